package api

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestListen wants answers to reach who asked, whatever else a process says.
func TestListen(t *testing.T) {
	t.Parallel()
	told := make(chan answer, 1)
	p := &nodeProcess{ready: make(chan struct{}), waiting: map[int]chan answer{2: told}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.listen(strings.NewReader(`{"Ready":true}{"ID":1}{"Ready":true}{"ID":2,"Error":"no"}{"ID":2}{"ID":`))
	}()
	select {
	case <-ended:
	case <-time.After(Patience):
		t.Fatal("it does not end")
	}
	<-p.ready
	if a := <-told; a.Error != "no" || len(p.waiting) != 0 {
		t.Errorf("answer %+v, and still awaited: %v", a, p.waiting)
	}
}

// TestAskNobody wants an error where no agent of a node comes, or one that never
// gets ready or does not answer.
func TestAskNobody(t *testing.T) {
	t.Parallel()
	closed := func() chan struct{} {
		c := make(chan struct{})
		close(c)
		return c
	}
	for name, life := range map[string]func() *nodeProcess{
		"no agent":    func() *nodeProcess { return nil },
		"died":        func() *nodeProcess { return &nodeProcess{ended: closed()} },
		"never ready": func() *nodeProcess { return &nodeProcess{ready: make(chan struct{}), ended: make(chan struct{})} },
		"answers never": func() *nodeProcess {
			return &nodeProcess{ready: closed(), ended: make(chan struct{}), in: deaf{}, waiting: map[int]chan answer{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slot{node: &stressNode{life: life(), next: make(chan struct{})}}
				if _, err := s.ask(t, order{}); !errors.Is(err, errNoAgent) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// deaf takes orders and does nothing.
type deaf struct{}

// Write implements io.Writer.
func (deaf) Write(p []byte) (int, error) { return len(p), nil }

// Close implements io.Closer.
func (deaf) Close() error { return nil }
