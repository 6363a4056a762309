package main

import (
	"github.com/spf13/cobra"

	"railhead/hack/cluster/binaries"
)

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "build what clusters are made of, and start none",
		Long: "Builds Kubernetes and what goes with it into the cache, as the first cluster would. What is there already\n" +
			"is left alone; a process that builds already is waited for.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := binaries.Ensure(cmd.Context(), cmd.OutOrStdout())
			return err
		},
	}
}
