package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
and virtual machines that keep their addresses, and what is in quarantine. With
--pool or --node, each address and range by itself.

Conflicts come last: an address that two SpiderEndpoints name, one that two
ledgers give, an endpoint whose address is another node's or free, and a lease
that shows what its ledger does not say. Objects are written one after the other,
so some differ for a moment: what is found is looked at again after --recheck,
and counts if it is still there. The exit status is 2 then.

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
	books, problems, err := f.look(ctx, reader)
	if err != nil {
		return err
	}
	if len(books.Conflicts) > 0 && f.recheck > 0 {
		first := books.Conflicts
		if err := wait(ctx, f.recheck); err != nil {
			return err
		}
		if books, problems, err = f.look(ctx, reader); err != nil {
			return err
		}
		books.Conflicts = overview.Persisting(first, books.Conflicts)
	}
	printProblems(cmd.ErrOrStderr(), problems)
	if err := f.print(cmd.OutOrStdout(), &books); err != nil {
		return err
	}
	if len(books.Conflicts) > 0 {
		return exitCode(exitErrors)
	}
	return nil
}

// look reads the books of the pool and the node that are asked for, and what
// could not be read.
func (f *addressesFlags) look(ctx context.Context, reader *overview.Reader) (overview.Books, []error, error) {
	objects, err := reader.Addresses(ctx)
	if err != nil {
		return overview.Books{}, nil, err
	}
	books, errs := overview.Addresses(objects)
	if f.pool != "" && objects.Pools != nil && !knowsPool(objects, &books, f.pool) {
		return books, nil, fmt.Errorf("there is no pool %q", f.pool)
	}
	return books.Of(f.pool, f.node), append(objects.Problems, errs...), nil
}

// knowsPool says whether a pool is there, or was and has addresses in use.
func knowsPool(o *overview.Objects, books *overview.Books, name string) bool {
	for _, p := range o.Pools {
		if p.Name == name {
			return true
		}
	}
	return slices.ContainsFunc(books.Nodes, func(n overview.NodeAddresses) bool { return n.Pool == name })
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
	return printConflicts(w, books.Conflicts)
}

func (f *addressesFlags) printTable(w io.Writer, books *overview.Books) error {
	isNarrow := f.output.value == formatText
	switch {
	case len(books.Nodes)+len(books.Runs) == 0:
		_, err := fmt.Fprintln(w, "no addresses are held")
		return err
	case f.pool == "" && f.node == "":
		return printTable(w, nodeAddressesTable, books.Nodes)
	case isNarrow:
		return printTable(w, narrow(runsTable), books.Runs)
	}
	return printTable(w, runsTable, books.Runs)
}

func printConflicts(w io.Writer, conflicts []overview.Conflict) error {
	if len(conflicts) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nconflicts:\n")
	for i := range conflicts {
		c := &conflicts[i]
		fmt.Fprintf(&b, "  %s\n", printable(strings.TrimSpace(c.Addresses+" of pool "+c.Pool)+": "+c.Message))
	}
	_, err := io.WriteString(w, b.String())
	return err
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
