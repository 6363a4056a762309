package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/overview"
)

func poolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pools [NAME…]",
		Short: "List the pools of the cluster, how full they are and who may use them",
		Long: `List the SpiderIPPools of the cluster: family and subnet, how many addresses
there are, in use and free, and who may use them. Addresses in use are counted
from SpiderEndpoints; reserved ones are neither in use nor free. A pool that
gives no addresses says why. It needs to list spiderippools, spidersubnets,
spiderreservedips and spiderendpoints, and changes nothing.`,
	}
	cluster := addClusterFlags(cmd)
	order := cmd.Flags().String("sort", "name", "in which order: name, or used for the fullest first")
	output := addFormatFlag(cmd, formatText, formatWide, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if *order != "name" && *order != "used" {
			return fmt.Errorf("--sort: there is no order %q, there are name and used", *order)
		}
		reader, err := cluster.reader()
		if err != nil {
			return err
		}
		objects, err := reader.Pools(contextOf(cmd))
		if err != nil {
			return err
		}
		printProblems(cmd.ErrOrStderr(), objects.Problems)
		pools := overview.Pools(objects)
		if *order == "used" {
			overview.FullestFirst(pools)
		}
		pools, err = chosen(pools, names, "pool", func(p overview.Pool, name string) bool { return p.Name == name })
		if err != nil {
			return err
		}
		return printPools(cmd.OutOrStdout(), output.value, pools)
	}
	return cmd
}

func (f *clusterFlags) reader() (*overview.Reader, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	return overview.NewReader(config)
}

func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

func printProblems(w io.Writer, problems []error) {
	for _, p := range problems {
		fmt.Fprintf(w, "railhead: %s\n", printable(p.Error()))
	}
}

// chosen returns the rows that are named, all without names, in their order.
func chosen[Row any](rows []Row, names []string, what string, is func(Row, string) bool) ([]Row, error) {
	if len(names) == 0 {
		return rows, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r Row) bool { return is(r, name) }) {
			return nil, fmt.Errorf("there is no %s %q", what, name)
		}
	}
	return slices.DeleteFunc(rows, func(r Row) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return is(r, name) })
	}), nil
}

func printPools(w io.Writer, f format, pools []overview.Pool) error {
	switch {
	case f == formatJSON || f == formatYAML:
		return printData(w, f, map[string]any{"pools": pools})
	case len(pools) == 0:
		_, err := fmt.Fprintln(w, "no pools")
		return err
	case f == formatText:
		return printTable(w, narrow(poolsTable), pools)
	}
	return printTable(w, poolsTable, pools)
}

// count is a number, or nothing where it is not known.
func count(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// part is how much of a pool is in use.
func part(p overview.Pool) string {
	if p.Total == nil || p.Used == nil || *p.Total == 0 {
		return ""
	}
	const percent = 100
	return strconv.FormatFloat(percent*float64(*p.Used)/float64(*p.Total), 'f', 0, 64) + "%"
}

func familyCell(p overview.Pool) string {
	if p.Family == 0 {
		return ""
	}
	return "IPv" + strconv.FormatInt(p.Family, 10)
}

// flagsCell tells what is unusual about a pool.
func flagsCell(p overview.Pool) string {
	var flags []string
	if p.Default {
		flags = append(flags, "default")
	}
	if p.Disabled {
		flags = append(flags, "disabled")
	}
	if p.Deleting {
		flags = append(flags, "deleting")
	}
	return strings.Join(flags, ",")
}

func forCell(p overview.Pool) string {
	if len(p.For) == 0 {
		return "all"
	}
	return strings.Join(p.For, "; ")
}

// readyCell says whether the controller has found an object good, or why not.
func readyCell(ready *bool, why string) string {
	switch {
	case ready == nil:
		return "unknown"
	case *ready:
		return "yes"
	case why == "":
		return "no"
	}
	return "no: " + why
}
