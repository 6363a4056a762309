package certificates

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// writePair writes files as cert-manager's Secret has them.
func writePair(t *testing.T, directory string, m *material, bundle []byte) {
	t.Helper()
	files := map[string][]byte{"tls.crt": m.serving.certificate, "tls.key": m.serving.key}
	if bundle != nil {
		files["ca.crt"] = bundle
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(directory, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func material1(t *testing.T) *material {
	t.Helper()
	m, err := newMaterial([]string{serviceName}, time.Now(), year, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFiles(t *testing.T) {
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, second := material1(t), material1(t)
		f := NewFiles(directory, slog.New(slog.DiscardHandler))
		changes := 0
		f.OnChange(func() { changes++ })
		go func() { _ = f.Start(t.Context()) }()
		synctest.Wait()
		if _, ok := f.Bundle(); ok {
			t.Fatal("there is a bundle without files")
		}
		soon := func() {
			time.Sleep(3 * filesEvery)
			synctest.Wait()
		}
		writePair(t, directory, first, first.bundle())
		soon()
		bundle, ok := f.Bundle()
		if leaf, err := shake(f, bundle, serviceName); !ok || err != nil || !leaf.Equal(first.serving.served.Leaf) {
			t.Fatalf("the first certificate is not served: %v", err)
		}

		// Half written: the key is of another certificate.
		if err := os.WriteFile(filepath.Join(directory, "tls.key"), second.serving.key, 0o600); err != nil {
			t.Fatal(err)
		}
		soon()
		if leaf, err := shake(f, bundle, serviceName); err != nil || !leaf.Equal(first.serving.served.Leaf) {
			t.Fatalf("the first certificate is not served while files are written: %v", err)
		}

		writePair(t, directory, second, second.bundle())
		soon()
		bundle, _ = f.Bundle()
		if leaf, err := shake(f, bundle, serviceName); err != nil || !leaf.Equal(second.serving.served.Leaf) {
			t.Fatalf("the second certificate is not served: %v", err)
		}
		if n := len(casOf(t, bundle)); n != 2 {
			t.Errorf("%d CAs are trusted, want that of replicas with the old files too", n)
		}
		if changes != 2 {
			t.Errorf("the bundle changed %d times, want twice", changes)
		}
	})
}

// TestFilesForgets: a CA that is in no file stays trusted until it expires.
func TestFilesForgets(t *testing.T) {
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first := material1(t)
		f := NewFiles(directory, slog.New(slog.DiscardHandler))
		for range 2 {
			m := first
			if _, ok := f.Bundle(); ok {
				time.Sleep(year / 2)
				m = material1(t)
			}
			writePair(t, directory, m, m.bundle())
			if err := f.read(); err != nil {
				t.Fatal(err)
			}
			if bundle, _ := f.Bundle(); !bytes.Contains(bundle, first.bundle()) {
				t.Error("the first CA is not trusted")
			}
		}
		time.Sleep(year / 2)
		if err := f.read(); err != nil {
			t.Fatal(err)
		}
		if bundle, _ := f.Bundle(); bytes.Contains(bundle, first.bundle()) {
			t.Error("a CA is trusted that has expired")
		}
	})
}

func TestFilesWithoutCA(t *testing.T) {
	directory := t.TempDir()
	writePair(t, directory, material1(t), nil)
	f := NewFiles(directory, slog.New(slog.DiscardHandler))
	if err := f.read(); err != nil {
		t.Fatal(err)
	}
	if bundle, ok := f.Bundle(); !ok || len(bundle) > 0 {
		t.Errorf("bundle %q, %t, want an empty one", bundle, ok)
	}
}

func TestFilesErrors(t *testing.T) {
	for name, change := range map[string]func(string) error{
		"tls.crt": os.Remove,
		"tls.key": os.Remove,
		"ca.crt":  func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	} {
		directory := t.TempDir()
		m := material1(t)
		writePair(t, directory, m, m.bundle())
		if err := change(filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
		f := NewFiles(directory, slog.New(slog.DiscardHandler))
		err := f.read()
		if err == nil {
			t.Errorf("%s is of no use, and there is no error", name)
		}
		if name != "ca.crt" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is missing: error %v, want fs.ErrNotExist", name, err)
		}
		if _, ok := f.Bundle(); ok {
			t.Errorf("%s is of no use, and something is served", name)
		}
	}
}
