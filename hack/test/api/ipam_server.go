package api

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// CrashServer ends the API server and etcd as they stand. What was written stays:
// StartServer has them go on at the same addresses and with the same certificates.
func (s *Server) CrashServer(tb testing.TB) {
	tb.Helper()
	s.crash(tb, "kube-apiserver", s.env.ControlPlane.APIServer.Stop)
	s.crash(tb, "etcd", s.env.ControlPlane.Etcd.Stop)
}

// crash kills a program, and waits for its end.
func (s *Server) crash(tb testing.TB, name string, wait func() error) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(s.sub(launchDir), name+pidSuffix))
	if err != nil {
		tb.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		tb.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		tb.Fatal(err)
	}
	if err := wait(); err != nil {
		tb.Fatal(err)
	}
}

// StartServer starts what CrashServer ended, and waits until it answers.
func (s *Server) StartServer(tb testing.TB) {
	tb.Helper()
	if err := s.env.ControlPlane.Etcd.Start(); err != nil {
		tb.Fatal(err)
	}
	if err := s.env.ControlPlane.APIServer.Start(); err != nil {
		tb.Fatal(err)
	}
}
