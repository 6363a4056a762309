package driver

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Init() // the test program is also the first process of machines
	os.Exit(m.Run())
}

// testLimit ends what should not take a second.
const testLimit = 2 * time.Minute

// eventually waits for what happens in its own time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(testLimit); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: still not so after %v", what, testLimit)
		}
	}
}

// returns wants a function to return at all.
func returns(t *testing.T, what string, do func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-time.After(testLimit):
		t.Fatalf("%s has not returned after %v", what, testLimit)
		return nil
	}
}
