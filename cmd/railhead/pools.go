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
there are, who has them, and who may use them. A pool that gives none says why.

  TOTAL        addresses of the pool: ips without excludeIPs
  USED         those of pods: by SpiderEndpoints, by quarantines under a pod's name,
               and by the pool's status where no ledger is about them
  HELD         those that nodes have for pods, used or in reserve, and those that
               are kept for pods and virtual machines which come back; by the ledgers
  QUARANTINED  those that nobody has for now; by the ledgers
  FREE         those that can be granted to a node now: TOTAL without what is
               reserved, held, in quarantine, used, or held by an overlapping pool

Addresses in quarantine are granted when none are free, and so may be asked for
beyond FREE. What is HELD and not USED is in reserve on a node: its pods get it at
once, and other nodes when it is recalled. A pool that was made smaller may have
addresses held that are no more among its TOTAL. A pool that is disabled, being
deleted or not ready grants nothing, be addresses FREE or not.

"-" is what nobody knows. Where something could not be read or understood, such as
a ledger, standard error says what, and the exit status is 3.

It needs to list spiderippools, spidersubnets, spiderreservedips, spiderendpoints
and poolledgers, and changes nothing.`,
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
		pools, errs := overview.Pools(objects)
		problems := overview.Brief(append(objects.Problems, errs...))
		printProblems(cmd.ErrOrStderr(), problems)
		if *order == "used" {
			overview.FullestFirst(pools)
		}
		pools, err = chosen(pools, names, "pool", func(p overview.Pool, name string) bool { return p.Name == name })
		if err != nil {
			return err
		}
		if err := printPools(cmd.OutOrStdout(), output.value, pools, problems); err != nil {
			return err
		}
		if len(problems) > 0 {
			return exitCode(exitFailed)
		}
		return nil
	}
	return cmd
}

func (f *clusterFlags) reader() (*overview.Reader, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	reader, err := overview.NewReader(config)
	if err != nil { // of files and programs that it names
		return nil, f.noCluster(err)
	}
	return reader, nil
}

func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// printProblems prints why something is missing, a line each.
func printProblems(w io.Writer, problems []error) { printTexts(w, texts(overview.Brief(problems))) }

func printTexts(w io.Writer, texts []string) {
	for _, t := range texts {
		fmt.Fprintf(w, "railhead: %s\n", printable(t))
	}
}

func texts(problems []error) []string {
	list := make([]string, len(problems)) // and never null in JSON
	for i, p := range problems {
		list[i] = p.Error()
	}
	return list
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

func printPools(w io.Writer, f format, pools []overview.Pool, problems []error) error {
	switch {
	case f == formatJSON || f == formatYAML:
		return printData(w, f, map[string]any{"pools": pools, "problems": texts(problems)})
	case len(pools) == 0 && len(problems) > 0:
		_, err := fmt.Fprintln(w, "which pools there are is not known")
		return err
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
