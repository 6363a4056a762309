package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/overview"
)

func explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Explain how a pod is attached and which addresses it has, and why",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(explainPodCommand())
	return cmd
}

func explainPodCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pod NAMESPACE/NAME",
		Short: "Explain which pools a pod may take addresses of, what it was given, and how it is attached",
		Long: `Explain the addresses of a pod: for each interface which pools were considered,
in their order, who named them and why others were passed over; what the pod was
given, by the lease of its node and which epoch of which ledger; or why nothing
was given: the pod is on no node yet or on the node's network, has ended, has no
network whose addresses are of pools, or its node is short of them or fenced.

Of a pod that was attached it shows interfaces, routes, rules, what was asked on the
wire before the pod started, and how long each step took, as the pod's annotations
say; and of one that could not be attached why, by its last Event. On the node,
railhead attachments knows more, and whether all is still so.

The name is NAMESPACE/NAME, or NAME with -n or the namespace of the context. It
needs to get the pod, its namespace, node, SpiderEndpoint, AddressLease, and the
ReplicaSet or Job that made it, and to list events, configmaps, spiderippools,
spiderreservedips, poolledgers and network-attachment-definitions. What may not
be read is told on standard error, and the exit status is 0 all the same. It
changes nothing.`,
		Args: cobra.ExactArgs(1),
	}
	cluster := addClusterFlags(cmd)
	cmd.Flags().StringVarP(&cluster.namespace, "namespace", "n", "", "the namespace (default: that of the context)")
	output := addFormatFlag(cmd, formatText, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		namespace, name, err := cluster.podName(args[0])
		if err != nil {
			return err
		}
		reader, err := cluster.reader()
		if err != nil {
			return err
		}
		objects, err := reader.Pod(contextOf(cmd), namespace, name)
		if err != nil {
			return err
		}
		var explained podExplanation
		explained.Phase = objects.Phase
		errs := explained.attached(contextOf(cmd), reader, objects)
		objects.Tried = explained.Failed != nil
		explanation, more := overview.Explain(objects)
		explained.Explanation, errs = explanation, append(more, errs...)
		explained.Problems = texts(overview.Brief(append(objects.Problems, errs...)))
		printTexts(cmd.ErrOrStderr(), explained.Problems)
		if output.value != formatText {
			return printData(cmd.OutOrStdout(), output.value, explained)
		}
		return printExplanation(cmd.OutOrStdout(), &explained)
	}
	return cmd
}

// podName reads "namespace/name" or "name".
func (f *clusterFlags) podName(text string) (namespace, name string, err error) {
	namespace, name, both := strings.Cut(text, "/")
	switch {
	case !both && text != "":
		namespace, err = f.where()
		return namespace, text, err
	case namespace == "" || name == "" || strings.Contains(name, "/"):
		return "", "", fmt.Errorf("%q is no name of a pod: want NAMESPACE/NAME, or NAME with -n NAMESPACE", text)
	case f.namespace != "" && f.namespace != namespace:
		return "", "", fmt.Errorf("-n %s contradicts %q: want one of the two", f.namespace, text)
	}
	return namespace, name, nil
}

func printExplanation(w io.Writer, e *podExplanation) error {
	if err := printHead(w, e); err != nil {
		return err
	}
	given, considered := explainedRows(&e.Explanation)
	if len(given) > 0 {
		if err := printSection(w, "addresses:", givenTable, given); err != nil {
			return err
		}
	}
	if len(considered) > 0 {
		if err := printSection(w, "pools considered:", consideredTable, considered); err != nil {
			return err
		}
	}
	if err := e.printAttached(w); err != nil {
		return err
	}
	var b strings.Builder
	printLines(&b, "why it could not be attached:", e.whyFailed())
	printLines(&b, "why it has no more:", whys(&e.Explanation))
	printLines(&b, "notes:", e.notes())
	_, err := io.WriteString(w, b.String())
	return err
}

// printHead names the pod.
func printHead(w io.Writer, e *podExplanation) error {
	text := "pod " + e.FullName()
	switch {
	case e.Node == "" && e.Ended():
		text += " on no node"
	case e.Node == "":
		text += " on no node yet"
	default:
		text += " on node " + e.Node
	}
	if e.Identity != "" {
		text += ", keeps its addresses as " + e.Identity
	}
	text += e.attachedWords()
	var elsewhere []string
	for i := range e.Interfaces {
		if !e.Interfaces[i].Pools {
			elsewhere = append(elsewhere, e.Interfaces[i].Interface)
		}
	}
	if len(elsewhere) > 0 {
		text += "; of no pool of ours: " + strings.Join(elsewhere, ", ")
	}
	_, err := fmt.Fprintln(w, printable(text))
	return err
}

func printSection[Row any](w io.Writer, title string, columns []column[Row], rows []Row) error {
	if _, err := fmt.Fprintf(w, "\n%s\n", title); err != nil {
		return err
	}
	return printTable(w, columns, rows)
}

func printLines(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", printable(line))
	}
}

// whys are all reasons why a pod has less than it is to have.
func whys(e *overview.Explanation) []string {
	var lines []string
	for i := range e.Interfaces {
		if at := &e.Interfaces[i]; at.Why != "" {
			lines = append(lines, at.Interface+": "+at.Why)
		}
	}
	return append(lines, e.Why...)
}

// explainedRows are the lines of the two tables.
func explainedRows(e *overview.Explanation) (given []givenRow, considered []consideredRow) {
	for i := range e.Interfaces {
		at := &e.Interfaces[i]
		for _, g := range at.Given {
			given = append(given, givenRow{at.Interface, g})
		}
		for _, c := range at.Considered {
			considered = append(considered, consideredRow{at.Interface, c})
		}
	}
	return given, considered
}
