package api

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"railhead/hack/program"
)

// Said is what kubectl printed.
type Said struct {
	Stdout, Stderr string
	Failed         bool
}

// Kubectl runs kubectl as the administrator.
func (s *Server) Kubectl(tb testing.TB, input string, args ...string) Said {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	path, err := s.programs.Path("kubectl")
	if err != nil {
		tb.Fatal(err)
	}
	cmd := program.Command(ctx, path, append([]string{
		"--kubeconfig", s.kubeconfig(), "--cache-dir", sub(s.home, "kubectl"),
	}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		tb.Fatalf("kubectl %s: %v", strings.Join(args, " "), ctx.Err())
	}
	return Said{Stdout: stdout.String(), Stderr: stderr.String(), Failed: err != nil}
}

// Apply is `kubectl apply` of manifests, with its usual strict validation.
func (s *Server) Apply(tb testing.TB, manifests string) Said {
	tb.Helper()
	return s.Kubectl(tb, manifests, "apply", "-f", "-")
}

// MustApply is Apply of what has to be accepted.
func (s *Server) MustApply(tb testing.TB, manifests string) Said {
	tb.Helper()
	said := s.Apply(tb, manifests)
	if said.Failed {
		tb.Fatalf("kubectl apply: %s%s\n%s", said.Stdout, said.Stderr, manifests)
	}
	return said
}

func lastLines(text string, n int) string { return program.LastLines(text, n) }
