package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/overview"
)

// addressesFlags say which addresses to show, and how.
type addressesFlags struct {
	cluster    *clusterFlags
	output     *formatFlag
	pool, node string
	recheck    time.Duration
}

func addressesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "addresses",
		Short: "Show who has which addresses, and what contradicts",
		Long: `Show who has the addresses of pools by the ledgers: how many each node holds,
how many of these pods use and how many are its reserve, what is pinned to pods
and virtual machines that keep their addresses, and what is in quarantine. SHORT
is how many addresses a node needs by its lease and does not hold, and WHY what
the controller says of that; -o wide adds how many it WANTS in all, and how many
the controller would like back (RECALLED). With --pool or --node, each address
and range by itself. "-" is what nobody knows.

Leases come next that have something to say: why a node is given nothing, such as
a fence, and requests that the controller does not answer; and with --pool or
--node, how many addresses nodes are short of.

Conflicts come last: an address that two SpiderEndpoints name, one that two
ledgers give, an endpoint whose address is another node's or free, and a lease
that shows what its ledger does not say. Objects are written one after the other,
so some differ for a moment: what is found is looked at again after --recheck,
and counts if it is still there.

The exit status is 2 where there are conflicts. It is 3 where something could not
be read or understood, such as a ledger or an identity: standard error says what,
and what is shown may be less than there is.

It needs to list poolledgers, addressleases, spiderendpoints and spiderippools,
and changes nothing.`,
		Args: cobra.NoArgs,
	}
	f := &addressesFlags{cluster: addClusterFlags(cmd)}
	cmd.Flags().StringVar(&f.pool, "pool", "", "the addresses of this pool, one by one")
	cmd.Flags().StringVar(&f.node, "node", "", "the addresses of this node, one by one")
	cmd.Flags().DurationVar(&f.recheck, "recheck", 2*time.Second, "how long after a conflict was seen to look again; 0 for no second look")
	f.output = addFormatFlag(cmd, formatText, formatWide, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd) }
	return cmd
}

func (f *addressesFlags) run(cmd *cobra.Command) error {
	if f.recheck < 0 {
		return fmt.Errorf("--recheck: %s is no time to wait: want 0 or more, such as 2s", f.recheck)
	}
	reader, err := f.cluster.reader()
	if err != nil {
		return err
	}
	ctx := contextOf(cmd)
	books, err := f.look(ctx, reader)
	if err != nil {
		return err
	}
	if f.recheck > 0 && (len(books.Conflicts) > 0 || slices.ContainsFunc(books.Leases, isUnanswered)) {
		first := books
		if err := wait(ctx, f.recheck); err != nil {
			return err
		}
		if books, err = f.look(ctx, reader); err != nil {
			return err
		}
		books.Conflicts = overview.Persisting(first.Conflicts, books.Conflicts)
		books.Leases = overview.StillUnanswered(first.Leases, books.Leases)
	}
	printTexts(cmd.ErrOrStderr(), books.Problems)
	if err := f.print(cmd.OutOrStdout(), &books); err != nil {
		return err
	}
	switch {
	case len(books.Problems) > 0:
		return exitCode(exitFailed)
	case len(books.Conflicts) > 0:
		return exitCode(exitErrors)
	}
	return nil
}

func isUnanswered(n overview.LeaseNotice) bool { return n.IsUnanswered() }

// look reads the books of the pool and the node that are asked for.
func (f *addressesFlags) look(ctx context.Context, reader *overview.Reader) (overview.Books, error) {
	objects, err := reader.Addresses(ctx)
	if err != nil {
		return overview.Books{}, err
	}
	all, errs := overview.Addresses(objects)
	problems := overview.Brief(append(objects.Problems, errs...))
	if f.pool != "" && objects.Pools != nil && !knowsPool(objects, &all, f.pool) {
		return all, fmt.Errorf("there is no pool %q", f.pool)
	}
	if f.node != "" && len(problems) == 0 && !knowsNode(objects, &all, f.node) {
		return all, fmt.Errorf("there is no node %q: no AddressLease, PoolLedger or SpiderEndpoint names it", f.node)
	}
	books := all.Of(f.pool, f.node)
	books.Problems = texts(problems)
	return books, nil
}

// knowsPool says whether a pool is there, or was and has addresses in use.
func knowsPool(o *overview.Objects, books *overview.Books, name string) bool {
	return slices.ContainsFunc(o.Pools, func(p *v2beta1.SpiderIPPool) bool { return p.Name == name }) ||
		slices.ContainsFunc(o.Ledgers, func(l *v1alpha1.PoolLedger) bool { return l.Spec.Pool == name }) ||
		slices.ContainsFunc(books.Nodes, func(n overview.NodeAddresses) bool { return n.Pool == name })
}

// knowsNode says whether a lease, a ledger or an endpoint names a node.
func knowsNode(o *overview.Objects, books *overview.Books, name string) bool {
	return slices.ContainsFunc(o.Leases, func(l *v1alpha1.AddressLease) bool { return l.Name == name }) ||
		slices.ContainsFunc(books.Runs, func(r overview.AddressRun) bool { return r.Node == name || r.Target == name }) ||
		slices.ContainsFunc(o.Endpoints, func(e *v2beta1.SpiderEndpoint) bool { return e.Status.Current.Node == name })
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (f *addressesFlags) print(w io.Writer, books *overview.Books) error {
	output := f.output.value
	if output == formatJSON || output == formatYAML {
		return printData(w, output, books)
	}
	if err := f.printTable(w, books); err != nil {
		return err
	}
	var b strings.Builder
	printLines(&b, "leases:", noticeLines(books.Leases))
	if f.isDetailed() { // otherwise the table has it
		printLines(&b, "short:", shortLines(books.Nodes))
	}
	printLines(&b, "conflicts:", conflictLines(books.Conflicts))
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *addressesFlags) printTable(w io.Writer, books *overview.Books) error {
	isNarrow := f.output.value == formatText
	switch {
	case len(books.Nodes)+len(books.Runs) == 0 && len(books.Problems) > 0:
		_, err := fmt.Fprintln(w, "which addresses are held is not known")
		return err
	case len(books.Nodes)+len(books.Runs) == 0:
		_, err := fmt.Fprintln(w, "no addresses are held")
		return err
	case !f.isDetailed() && isNarrow:
		return printTable(w, narrow(nodeAddressesTable), books.Nodes)
	case !f.isDetailed():
		return printTable(w, nodeAddressesTable, books.Nodes)
	case isNarrow:
		return printTable(w, narrow(runsTable), books.Runs)
	}
	return printTable(w, runsTable, books.Runs)
}

// isDetailed says whether addresses are shown one by one.
func (f *addressesFlags) isDetailed() bool { return f.pool != "" || f.node != "" }

func noticeLines(notices []overview.LeaseNotice) []string {
	lines := make([]string, len(notices))
	for i := range notices {
		lines[i] = notices[i].Node + ": " + notices[i].Message()
	}
	return lines
}

// shortLines are the nodes that have less than they need.
func shortLines(nodes []overview.NodeAddresses) []string {
	var lines []string
	for i := range nodes {
		n := &nodes[i]
		if n.Why == "" && (n.Short == nil || *n.Short == 0) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s of pool %s on node %s: %s", cmp.Or(count(n.Short), "some"), n.Pool, n.Node, cmp.Or(n.Why, "the controller does not say why")))
	}
	return lines
}

func conflictLines(conflicts []overview.Conflict) []string {
	lines := make([]string, len(conflicts))
	for i := range conflicts {
		c := &conflicts[i]
		lines[i] = strings.TrimSpace(c.Addresses+" of pool "+c.Pool) + ": " + c.Message
	}
	return lines
}

// holderCell is who has addresses, where that is no node alone.
func holderCell(r overview.AddressRun) string {
	if r.Interface != "" {
		return r.Pod + " " + r.Interface
	}
	return r.Pod
}

// keptCell is what else is to say of addresses: for whom they are kept, or why
// nobody has them.
func keptCell(r overview.AddressRun) string {
	var list []string
	if r.Identity != "" {
		list = append(list, r.Identity)
	}
	if r.Target != "" {
		list = append(list, "moves to "+r.Target)
	}
	if r.Doubtful {
		list = append(list, "doubtful")
	}
	if r.Reason != "" {
		list = append(list, r.Reason+" since "+r.Since.UTC().Format(time.RFC3339))
	}
	return strings.Join(list, ", ")
}

// epochCell is the epoch of a grant, or nothing where there was none.
func epochCell(epoch int64) string {
	if epoch == 0 {
		return ""
	}
	return strconv.FormatInt(epoch, 10)
}
