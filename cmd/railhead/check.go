package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/check"
	"railhead/internal/inventory"
)

// The exit statuses of "railhead check".
const (
	exitWarnings = 1
	exitErrors   = 2
)

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say why RDMA does not work on this node, and how to mend it",
		Long: `Hold this node against what RDMA needs: hardware, drivers, modules, network
namespace mode, ports, GUIDs, GIDs, speeds, character devices, limits, SR-IOV,
subnets, GPUs and the container runtime. Each finding says what was seen, why it
matters and the command that mends it. Nothing is changed.

The exit status tells the worst finding: 0 for none or only info, 1 for warnings,
2 for errors, 3 when the check itself could not be made.`,
		Args: cobra.NoArgs,
	}
	source := addSourceFlags(cmd)
	wishes := addWishFlags(cmd)
	output := addFormatFlag(cmd, formatText, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := wishes.validate(); err != nil {
			return err
		}
		n, err := source.look()
		if err != nil {
			return err
		}
		findings := check.Run(n, wishes.Wishes)
		if err := printFindings(cmd.OutOrStdout(), output.value, findings); err != nil {
			return err
		}
		return worstExit(findings)
	}
	return cmd
}

type wishFlags struct{ check.Wishes }

func addWishFlags(cmd *cobra.Command) *wishFlags {
	w := &wishFlags{}
	cmd.Flags().StringVar(&w.NetNSMode, "want-netns-mode", "", "the RDMA network namespace mode there should be: shared or exclusive")
	cmd.Flags().StringVar(&w.LinkLayer, "want-link-layer", "", "the link layer that the rails should have: ethernet or infiniband")
	cmd.Flags().IntVar(&w.VFs, "want-vfs", 0, "how many VFs each rail should have")
	return w
}

func (w *wishFlags) validate() error {
	switch w.NetNSMode {
	case "", "shared", "exclusive":
	default:
		return fmt.Errorf("--want-netns-mode: there is no mode %q, there are shared and exclusive", w.NetNSMode)
	}
	switch strings.ToLower(w.LinkLayer) {
	case "":
	case "ethernet":
		w.LinkLayer = inventory.Ethernet
	case "infiniband":
		w.LinkLayer = inventory.InfiniBand
	default:
		return fmt.Errorf("--want-link-layer: there is no link layer %q, there are ethernet and infiniband", w.LinkLayer)
	}
	if w.VFs < 0 {
		return fmt.Errorf("--want-vfs: %d is less than 0", w.VFs)
	}
	return nil
}

// worstExit turns the worst finding into an exit status.
func worstExit(findings []check.Finding) error {
	switch check.Worst(findings) {
	case check.Error:
		return exitCode(exitErrors)
	case check.Warning:
		return exitCode(exitWarnings)
	default:
		return nil
	}
}

// report is what -o json and -o yaml print.
type report struct {
	Worst    check.Severity  `json:"worst,omitempty"`
	Findings []check.Finding `json:"findings"`
}

func printFindings(w io.Writer, f format, findings []check.Finding) error {
	if f != formatText {
		return printData(w, f, report{Worst: check.Worst(findings), Findings: findings})
	}
	var b strings.Builder
	for _, finding := range findings {
		writeFinding(&b, finding)
	}
	b.WriteString(summary(findings) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFinding(b *strings.Builder, f check.Finding) {
	fmt.Fprintf(b, "%s %s: %s\n", strings.ToUpper(string(f.Severity)), f.ID, printable(f.Object))
	fmt.Fprintf(b, "  seen  %s\n  why   %s\n", printable(f.Seen), f.Why)
	for i, m := range f.Mend {
		label := "    "
		if i == 0 {
			label = "mend"
		}
		fmt.Fprintf(b, "  %s  %s\n", label, printable(m))
	}
	b.WriteByte('\n')
}

func summary(findings []check.Finding) string {
	counts := map[check.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
	}
	if len(findings) == 0 {
		return "nothing found that stands in the way of RDMA"
	}
	return fmt.Sprintf("errors: %d, warnings: %d, infos: %d", counts[check.Error], counts[check.Warning], counts[check.Info])
}
