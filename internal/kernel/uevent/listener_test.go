package uevent_test

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/uevent"
)

// messages plays a kernel that says some things and then nothing more.
type messages struct {
	says   []any // string for a message, error
	silent chan struct{}
}

func say(says ...any) *messages { return &messages{says: says, silent: make(chan struct{})} }

func (m *messages) Read(b []byte) (int, error) {
	if len(m.says) == 0 {
		<-m.silent
		return 0, io.ErrClosedPipe
	}
	said := m.says[0]
	m.says = m.says[1:]
	if err, ok := said.(error); ok {
		return 0, err
	}
	return copy(b, said.(string)), nil
}

func (m *messages) Close() error {
	close(m.silent)
	return nil
}

// TestNew hears each message for itself, goes on after errors, and ends when it
// is closed.
func TestNew(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("broken")
	l := uevent.New(say(
		"add@/devices/a\x00ACTION=add\x00SUBSYSTEM=net\x00SEQNUM=7\x00", "no event", uevent.ErrOverrun, errBroken,
		"remove@/devices/b\x00SEQNUM=8\x00",
	))
	e, err := l.Receive()
	want := uevent.Event{
		Action: "add", DevPath: "/devices/a", Subsystem: "net", Seq: 7,
		Vars: map[string]string{"ACTION": "add", "SUBSYSTEM": "net", "SEQNUM": "7"},
	}
	if diff := cmp.Diff(want, e); err != nil || diff != "" {
		t.Errorf("(-want +got):\n%s\nerror %v", diff, err)
	}
	if _, err := l.Receive(); err == nil {
		t.Error("no error for what is no event")
	}
	for _, want := range []error{uevent.ErrOverrun, errBroken} {
		if _, err := l.Receive(); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	if e, err := l.Receive(); err != nil || e.Seq != 8 {
		t.Errorf("event %+v, error %v, want the last one", e, err)
	}
	received := make(chan error)
	go func() {
		_, err := l.Receive()
		received <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-received; !errors.Is(err, fs.ErrClosed) {
		t.Errorf("error %v, want fs.ErrClosed", err)
	}
}
