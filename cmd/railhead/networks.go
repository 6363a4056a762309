package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/overview"
)

func networksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "networks [NAME…]",
		Short: "List the networks of the cluster, what was made of them and who uses them",
		Long: `List the SpiderMultusConfigs: their type, the netdevs or the resource they stand
on, their NetworkAttachmentDefinition (present, differs or missing), the values
that pods are given them by, their pools and how many pods are on them; and the
NetworkAttachmentDefinitions that no SpiderMultusConfig made. Pods are listed
where a network is named, and with -o wide. Pods that ask for a network there is
not are told of.

A name is "name", or "namespace/name" with -A. It needs to list
spidermultusconfigs, network-attachment-definitions, spiderippools and pods (of
pods it reads metadata only), and changes nothing.`,
	}
	cluster := addClusterFlags(cmd)
	cluster.addNamespaceFlags(cmd)
	output := addFormatFlag(cmd, formatText, formatWide, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		namespace, err := cluster.where()
		if err != nil {
			return err
		}
		reader, err := cluster.reader()
		if err != nil {
			return err
		}
		objects, err := reader.Networks(contextOf(cmd), namespace)
		if err != nil {
			return err
		}
		printProblems(cmd.ErrOrStderr(), append(objects.Problems, overview.Stray(objects)...))
		networks, err := chosen(overview.Networks(objects), names, "network", isNetwork)
		if err != nil {
			return err
		}
		if len(networks) == 0 && (output.value == formatText || output.value == formatWide) {
			return printNoNetworks(cmd.OutOrStdout(), namespace)
		}
		return printNetworks(cmd.OutOrStdout(), output.value, networks, len(names) > 0)
	}
	return cmd
}

func isNetwork(n overview.Network, name string) bool { return n.Name == name || n.FullName() == name }

func printNetworks(w io.Writer, f format, networks []overview.Network, isNamed bool) error {
	switch f {
	case formatJSON, formatYAML:
		return printData(w, f, map[string]any{"networks": networks})
	case formatWide:
		return printTable(w, networksTable, networks)
	}
	if err := printTable(w, narrow(networksTable), networks); err != nil || !isNamed {
		return err
	}
	for i := range networks {
		if err := printPods(w, &networks[i]); err != nil {
			return err
		}
	}
	return nil
}

func printNoNetworks(w io.Writer, namespace string) error {
	text := "no networks"
	if namespace != "" {
		text = fmt.Sprintf("no networks in namespace %s; -A looks in all", namespace)
	}
	_, err := fmt.Fprintln(w, printable(text))
	return err
}

// printPods lists the pods on a network.
func printPods(w io.Writer, n *overview.Network) error {
	var b strings.Builder
	switch {
	case n.Pods == nil:
		fmt.Fprintf(&b, "\nwhich pods are on %s is not known\n", printable(n.FullName()))
	case len(n.Pods) == 0:
		fmt.Fprintf(&b, "\nno pods on %s\n", printable(n.FullName()))
	default:
		fmt.Fprintf(&b, "\npods on %s:\n", printable(n.FullName()))
	}
	for i := range n.Pods {
		fmt.Fprintf(&b, "  %s\n", printable(podCell(&n.Pods[i])))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// podCell names a pod, and how many of its interfaces where these are several.
func podCell(p *overview.PodName) string {
	if p.Times == 1 {
		return p.FullName()
	}
	return fmt.Sprintf("%s (%d)", p.FullName(), p.Times)
}

func podsCell(n overview.Network) string {
	if n.Pods == nil {
		return "unknown"
	}
	return strconv.Itoa(len(n.Pods))
}

func podNamesCell(n overview.Network) string {
	var names []string
	for i := range n.Pods {
		names = append(names, podCell(&n.Pods[i]))
	}
	return strings.Join(names, ",")
}

// onCell is what a network stands on.
func onCell(n overview.Network) string {
	var on []string
	if len(n.Masters) > 0 {
		on = append(on, strings.Join(n.Masters, "+"))
	}
	if n.Bond != "" {
		on = append(on, "as "+n.Bond)
	}
	if n.VLAN != 0 {
		on = append(on, fmt.Sprintf("VLAN %d", n.VLAN))
	}
	return strings.Join(on, " ")
}

// madeCell says what became of the NetworkAttachmentDefinition.
func madeCell(n overview.Network) string {
	if n.Foreign {
		return "not of a SpiderMultusConfig"
	}
	text := string(n.NAD.State)
	if n.NAD.Name != n.Name {
		text = n.NAD.Name + " " + text
	}
	if n.NAD.Why != "" {
		text += ": " + n.NAD.Why
	}
	return text
}

// injectCell has the values by the short name of their annotation.
func injectCell(n overview.Network) string {
	var cells []string
	for _, key := range slices.Sorted(maps.Keys(n.Inject)) {
		_, short, _ := strings.Cut(key, "/")
		cells = append(cells, strings.TrimSuffix(short, "-resource-inject")+"="+strings.Join(n.Inject[key], ","))
	}
	return strings.Join(cells, " ")
}

func poolsCell(n overview.Network) string {
	var cells []string
	for _, p := range n.Pools {
		switch {
		case p.Exists != nil && !*p.Exists:
			cells = append(cells, p.Name+" (missing)")
		case p.WrongFamily != 0:
			cells = append(cells, fmt.Sprintf("%s (is IPv%d)", p.Name, p.WrongFamily))
		default:
			cells = append(cells, p.Name)
		}
	}
	return strings.Join(cells, ",")
}

func networkReadyCell(n overview.Network) string {
	if n.Foreign {
		return ""
	}
	return readyCell(n.Ready, n.Why)
}
