package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"railhead/internal/attach/record"
	"railhead/internal/ipam/journal"
)

// attachmentsFlags say which record of attachments to read, and what of it.
type attachmentsFlags struct {
	dir     string
	output  *formatFlag
	kernel  comparer
	now     func() time.Time
	pods    []string
	damaged bool
}

func attachmentsCommand(kernel comparer, now func() time.Time) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "attachments [POD…]",
		Short: "Show what this node's agent attached to which pod, and whether it is still so",
		Long: `Show what the agent of this node attached to which pod, by the record that it
keeps on disk, and compare it with the kernel: links, addresses, routes, rules,
neighbours and settings in the pod's network namespace and on the node.

  ok              all is as it was made
  differs: 2      so many things are not: name the pod to see which
  namespace gone  the pod is, and the runtime has not said so yet
  attaching       it is being made, or an agent was stopped while it did
  detaching       it is being taken away, likewise
  not compared    that takes root, or the record has no plan that is understood

With the name of a pod, NAMESPACE/NAME or NAME, or the beginning of a sandbox's
ID, it shows all of its interfaces, routes, rules, checks on the wire, and steps
with their times.

The exit status is 2 where something differs. It is 3 where the record cannot be
read as a whole: standard error says why. It reads and changes nothing, and needs
neither the API server nor the agent to run.`,
	}
	f := &attachmentsFlags{kernel: kernel, now: now}
	cmd.Flags().StringVar(&f.dir, "dir", record.Directory, "the directory of the agent's record")
	f.output = addFormatFlag(cmd, formatText, formatWide, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, pods []string) error {
		f.pods = pods
		return f.run(cmd)
	}
	return cmd
}

func (f *attachmentsFlags) run(cmd *cobra.Command) error {
	all, err := f.read(cmd)
	if err != nil {
		return err
	}
	if all, err = f.chosen(all); err != nil {
		return err
	}
	views, why := f.views(cmd, all)
	if why != nil {
		printProblems(cmd.ErrOrStderr(), []error{why})
	}
	if err := f.print(cmd, views); err != nil {
		return err
	}
	if f.damaged {
		return exitCode(exitFailed)
	}
	for i := range views {
		if len(views[i].Differences) > 0 {
			return exitCode(exitErrors)
		}
	}
	return nil
}

// read reads the record, and tells what is wrong with it.
func (f *attachmentsFlags) read(cmd *cobra.Command) ([]record.Attachment, error) {
	all, damage, err := record.Read(os.DirFS(f.dir), record.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s in %s: is the agent of this node running with --cni, and its --attachments-dir the same as --dir?", record.File, f.dir)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %w: it is root's, want to run this as root", f.dir, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.dir, err)
	}
	if damage == journal.DamageCorrupt { // a torn tail is one that the agent is writing
		f.damaged = true
		printProblems(cmd.ErrOrStderr(), []error{fmt.Errorf("%s/%s is damaged: some attachments may be missing here; the agent mends it when it starts, with what is readable", f.dir, record.File)})
	}
	return all, nil
}

// chosen are the attachments of the pods that are named, all without names.
func (f *attachmentsFlags) chosen(all []record.Attachment) ([]record.Attachment, error) {
	return chosen(all, f.pods, "attachment of a pod or of a sandbox", func(a record.Attachment, name string) bool {
		const least = 6 // of a sandbox's ID, which are no names then
		return name == a.Name || name == a.Namespace+"/"+a.Name || len(name) >= least && strings.HasPrefix(a.ContainerID, name)
	})
}

// views compares the attachments with the kernel. Why says why that cannot be.
func (f *attachmentsFlags) views(cmd *cobra.Command, all []record.Attachment) (views []attachmentView, why error) {
	compare, done, why := f.kernel()
	if why != nil {
		why = fmt.Errorf("attachments are not compared with the kernel: %w", why)
	} else {
		defer done()
	}
	for _, a := range all {
		v := viewOf(a)
		if v.State == "" && why == nil {
			v.State, v.Differences = compare(contextOf(cmd), a)
		}
		if v.State == "" {
			v.State = stateNotCompared
		}
		views = append(views, v)
	}
	return views, why
}

func (f *attachmentsFlags) print(cmd *cobra.Command, views []attachmentView) error {
	w := cmd.OutOrStdout()
	switch {
	case f.output.value == formatJSON || f.output.value == formatYAML:
		if views == nil {
			views = []attachmentView{}
		}
		return printData(w, f.output.value, map[string]any{"attachments": views})
	case len(views) == 0:
		_, err := fmt.Fprintln(w, "nothing is attached")
		return err
	case len(f.pods) > 0:
		for i := range views {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := printAttachment(w, &views[i], f.now()); err != nil {
				return err
			}
		}
		return nil
	}
	columns := attachmentsTable(f.now())
	if f.output.value == formatText {
		columns = narrow(columns)
	}
	return printTable(w, columns, views)
}
