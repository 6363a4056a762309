package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(buildInfo()))
			return err
		},
	}
}

// buildInfo is what Go noted in the binary, which may be nothing.
func buildInfo() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}

// version is the version of the binary.
func version() string { return cmp.Or(buildInfo().Main.Version, "(devel)") }

// versionLine says which source the binary was built from, and by which Go.
func versionLine(info *debug.BuildInfo) string {
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = " " + s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = " (modified)"
			}
		}
	}
	return fmt.Sprintf("railhead %s%s%s %s", cmp.Or(info.Main.Version, "(devel)"), revision, modified, info.GoVersion)
}
