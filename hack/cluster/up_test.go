package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
)

// TestStartDriver starts drivers that end in different ways, and wants their
// progress passed on and why they ended told.
func TestStartDriver(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct{ progress, err string }{
		"is ready":  {"one\ntwo\n", ""},
		"fails":     {"one\n", "no room\nfor it"},
		"ends":      {"one\n", "the driver ended before the cluster was ready: without a word"},
		"is killed": {"one\n", "the driver ended before the cluster was ready: signal: killed"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := startDriver(t.Context(), []string{fakeDriver, what}, &out)
			if got := message(err); got != want.err {
				t.Errorf("error %q, want %q", got, want.err)
			}
			if diff := cmp.Diff(want.progress, out.String()); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestStartDriverInterrupted wants a driver to be told to end when up is, and
// up to wait until it has.
func TestStartDriverInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- startDriver(ctx, []string{fakeDriver, "waits"}, in) }()
	if _, err := out.Read(make([]byte, 16)); err != nil { // it is there
		t.Fatal(err)
	}
	interrupt()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	select {
	case err := <-ended:
		if message(err) != "told to end" {
			t.Errorf("error %v, want that of the driver", err)
		}
	case <-time.After(testLimit):
		t.Error("up has not ended")
	}
}

// TestAudience wants a cluster to end when nobody waits for it any more.
func TestAudience(t *testing.T) {
	t.Parallel()
	// Not the kernel's pipe: programs that other tests start have its end too
	// until they execute.
	read, write := io.Pipe()
	go func() { _, _ = read.Read(make([]byte, 16)) }()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	a := newAudience(write, cancel)
	if _, err := io.WriteString(a, "one\n"); err != nil || ctx.Err() != nil {
		t.Errorf("while somebody is there: %v, %v", err, context.Cause(ctx))
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(a, "two\n"); err == nil {
		t.Error("written though nobody reads")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, errGone) {
		t.Errorf("the context ended with %v, want %v", cause, errGone)
	}
}

// TestOptions wants the driver to get the options that up was given.
func TestOptions(t *testing.T) {
	t.Parallel()
	want := driver.Options{Options: plan.Options{Nodes: 3, Rails: 4, IPv6: true}}
	var first driver.Options
	up := &cobra.Command{}
	options(up.Flags(), &first)
	if err := up.ParseFlags(strings.Fields("--nodes 3 --rails 4 --ipv4=false --ipv6")); err != nil {
		t.Fatal(err)
	}
	var got driver.Options
	passed := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	options(passed, &got)
	if err := passed.Parse(changed(up.Flags())); err != nil {
		t.Fatal(err)
	}
	for _, o := range []driver.Options{first, got} {
		if diff := cmp.Diff(want, o); diff != "" {
			t.Errorf("options (-want +got):\n%s", diff)
		}
	}
}
