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
func (s *Server) CrashServer(t *testing.T) {
	t.Helper()
	s.crash(t, "kube-apiserver", s.env.ControlPlane.APIServer.Stop)
	s.crash(t, "etcd", s.env.ControlPlane.Etcd.Stop)
}

// crash kills a program, and waits for its end.
func (s *Server) crash(t *testing.T, name string, wait func() error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sub(s.home, launchDir), name+pidSuffix))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}

// StartServer starts what CrashServer ended, and waits until it answers.
func (s *Server) StartServer(t *testing.T) {
	t.Helper()
	if err := s.env.ControlPlane.Etcd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.env.ControlPlane.APIServer.Start(); err != nil {
		t.Fatal(err)
	}
}
