package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/policy"
	"railhead/internal/validation"
)

// The exit statuses of "railhead validate".
const (
	exitRefused    = 1
	exitUnreadable = 2
)

func validateCommand() *cobra.Command {
	f := &validateFlags{}
	cmd := &cobra.Command{
		Use:   "validate -f FILE…",
		Short: "Say what the cluster would refuse of manifests, without a cluster",
		Long: `Check manifests by the rules of the cluster's admission, all objects of all files
together and in any order. Of pods and of what makes pods the annotations are
checked that choose networks, pools and routes; objects of other kinds are passed
over.

The exit status is 0 where all would be accepted, 1 where something would be
refused, 2 where something could not be read.`,
		Example: `  railhead validate -f pools.yaml -f networks.yaml
  helm template . | railhead validate -f -
  railhead validate -R -f manifests --conf conf.yml`,
	}
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "a file, a directory, or - for standard input; may be given again, and arguments are more of them")
	cmd.Flags().BoolVarP(&f.recursive, "recursive", "R", false, "go into directories below directories")
	cmd.Flags().StringVar(&f.conf, "conf", "", "the conf.yml of ConfigMap "+policy.ConfigMapName+" (default: what a cluster has that says nothing)")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "the namespace of objects that name none")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	output := addFormatFlag(cmd, formatText, formatJSON, formatYAML)
	unreadable := func(err error) error { return failure{error: err, status: exitUnreadable} }
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return unreadable(err) })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.files = append(f.files, args...)
		config, err := f.config()
		if err != nil {
			return unreadable(err)
		}
		sources, err := readManifests(f.files, f.recursive, cmd.InOrStdin())
		if err != nil {
			return unreadable(err)
		}
		report := validation.Review(sources, validation.Options{Config: config, Namespace: f.namespace})
		if err := f.print(cmd.OutOrStdout(), output.value, report); err != nil {
			return unreadable(err)
		}
		return exitOf(report)
	}
	return cmd
}

type validateFlags struct {
	files            []string
	recursive, quiet bool
	conf, namespace  string
}

// config reads --conf.
func (f *validateFlags) config() (policy.Config, error) {
	if len(f.files) == 0 {
		return policy.Config{}, errors.New("no files: want -f FILE, or -f - for standard input")
	}
	if f.conf == "" {
		return policy.DefaultConfig(), nil
	}
	text, err := os.ReadFile(f.conf)
	if err != nil {
		return policy.Config{}, fmt.Errorf("--conf: %w", err)
	}
	config, err := policy.ParseConfig(text)
	if err != nil {
		return policy.Config{}, fmt.Errorf("--conf %s: %w", f.conf, err)
	}
	return config, nil
}

// exitOf turns a report into an exit status.
func exitOf(r *validation.Report) error {
	switch {
	case r.Unreadable() > 0:
		return exitCode(exitUnreadable)
	case r.Refused() > 0:
		return exitCode(exitRefused)
	}
	return nil
}

func (f *validateFlags) print(w io.Writer, as format, r *validation.Report) error {
	if as != formatText {
		return printData(w, as, r)
	}
	var b strings.Builder
	for i := range r.Objects {
		f.writeObject(&b, &r.Objects[i])
	}
	if !f.quiet {
		b.WriteString(verdict(r) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeObject writes what there is to say about an object, as compilers do: a
// line each, which begins with where it is.
func (f *validateFlags) writeObject(b *strings.Builder, o *validation.Object) {
	name := "document"
	switch {
	case o.Name != "":
		name = o.Kind + " " + o.FullName()
	case o.Kind != "":
		name = o.Kind + " without a name"
	}
	line := func(number int, text string) {
		fmt.Fprintf(b, "%s\n", printable(fmt.Sprintf("%s:%d: %s: %s", o.File, number, name, text)))
	}
	for _, e := range o.Errors {
		if e.Path == "" {
			line(e.Line, e.Text)
		} else {
			line(e.Line, e.Path+": "+e.Text)
		}
	}
	if f.quiet {
		return
	}
	if o.Accepted && !o.Foreign {
		line(o.Line, "ok")
	}
	for _, text := range o.Warnings {
		line(o.Line, "warning: "+text)
	}
	for _, text := range o.Notes {
		line(o.Line, "note: "+text)
	}
}

// verdict sums up.
func verdict(r *validation.Report) string {
	var parts []string
	if bad := r.Unreadable(); bad > 0 {
		parts = append(parts, plural(bad, "document")+" unreadable")
	}
	if refused := r.Refused(); refused > 0 {
		parts = append(parts, plural(refused, "object")+" refused")
	}
	parts = append(parts, plural(r.Accepted(), "object")+" accepted")
	if r.Workloads > 0 {
		parts = append(parts, plural(r.Workloads, "workload")+" checked")
	}
	if r.Others > 0 {
		parts = append(parts, plural(r.Others, "document")+" of other kinds")
	}
	return strings.Join(parts, ", ")
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
