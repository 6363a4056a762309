package standin

import (
	"log/slog"

	"github.com/spf13/cobra"

	"railhead/hack/cluster/plan"
)

// DefaultDir is where stand-ins are when nobody says where.
const DefaultDir = "/run/standins"

// Command is Run as a verb, for the program that is started beside the fabric's bridge.
func Command() *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:    "standins",
		Short:  "Stand in for many nodes (needs root and namespaces of its own)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = cmd.OutOrStdout()
			o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Nodes, "nodes", 1, "how many")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "of an administrator")
	flags.StringVar(&o.Dir, "dir", DefaultDir, "for files, sockets and namespaces; emptied before and after")
	flags.StringVar(&o.Bridge, "bridge", plan.Bridge, "that eth0 of every node leads to")
	flags.BoolVar(&o.IPv4, "ipv4", true, "nodes and pods have IPv4 addresses")
	flags.BoolVar(&o.IPv6, "ipv6", false, "nodes and pods have IPv6 addresses")
	flags.StringSliceVar(&o.Plugins, "cni-bin", []string{"/opt/cni/bin"}, "directories with CNI plugins")
	flags.StringVar(&o.Conflist, "cni-conf", "", "template of a CNI configuration list; empty: a bridge with host-local")
	flags.BoolVar(&o.Taint, "taint", false, "keep pods away that do not tolerate "+Label)
	flags.IntVar(&o.Parallel, "parallel", 0, "pods that start or end at once; 0: four for each processor")
	return cmd
}
