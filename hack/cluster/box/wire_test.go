package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// pair returns both ends of an order socket.
func pair(t *testing.T) (ours, theirs *wire) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*wire
	for i, fd := range fds {
		if ends[i], err = newWire(os.NewFile(uintptr(fd), "orders")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ends[i].conn.Close() })
	}
	return ends[0], ends[1]
}

func TestWire(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	sent := order{ID: 3, Verb: verbStart, Service: &Service{Name: "kubelet", Args: []string{"kubelet", "--v=2"}, Restart: true}}
	if err := ours.send(sent, log, log); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var got order
	files, err := theirs.receive(&got)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("(-sent +got)\n%s", diff)
	}
	if _, err := files[1].WriteString("through"); err != nil {
		t.Error(err)
	}
	closeFiles(files)
	if text, err := os.ReadFile(path); err != nil || string(text) != "through" {
		t.Errorf("file has %q, %v", text, err)
	}

	if err := ours.send(order{Name: strings.Repeat("x", messageLimit)}); err == nil {
		t.Error("message that is too long: no error")
	}
	if err := ours.send(order{Name: strings.Repeat("x", messageLimit-100)}); err != nil {
		t.Errorf("message just short enough: %v", err)
	}
	if _, err := theirs.receive(&got); err != nil || len(got.Name) != messageLimit-100 {
		t.Errorf("received %d bytes, %v", len(got.Name), err)
	}
	if err := ours.conn.Close(); err != nil {
		t.Error(err)
	}
	if _, err := theirs.receive(&got); !errors.Is(err, io.EOF) {
		t.Errorf("other end closed: %v, want the end of file", err)
	}
}

func TestRemoteError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ err, is error }{
		{&fs.PathError{Op: "open", Path: "/x", Err: unix.ENOENT}, fs.ErrNotExist},
		{fmt.Errorf("outer: %w", unix.EACCES), fs.ErrPermission},
		{fmt.Errorf("outer: %w", unix.ESRCH), unix.ESRCH},
		{errors.New("plain"), nil},
	} {
		ours, theirs := pair(t)
		if err := ours.send(reply{ID: 1, Error: newRemoteError(test.err)}); err != nil {
			t.Fatal(err)
		}
		var r reply
		if _, err := theirs.receive(&r); err != nil {
			t.Fatal(err)
		}
		if got := r.err(); got.Error() != test.err.Error() || test.is != nil && !errors.Is(got, test.is) {
			t.Errorf("%v arrives as %v", test.err, got)
		}
	}
}

// TestOrders wants replies to come to who asked, in any order, and everybody to
// hear of the end.
func TestOrders(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	o := newOrders(ours)
	if err := theirs.send(reply{}); err != nil {
		t.Fatal(err)
	}
	if err := o.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, first, err := o.post(order{Verb: verbServices, Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := o.post(order{Verb: verbServices, Name: "second"})
	if err != nil {
		t.Fatal(err)
	}
	var asked [2]order
	for i := range asked {
		if _, err := theirs.receive(&asked[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range asked {
		question := asked[len(asked)-1-i]
		if err := theirs.send(reply{ID: question.ID, Services: []Status{{Name: question.Name}}}); err != nil {
			t.Fatal(err)
		}
	}
	for want, answer := range map[string]<-chan reply{"first": first, "second": second} {
		if r, err := await(t.Context(), o.ended, answer); err != nil || r.Services[0].Name != want {
			t.Errorf("reply %+v, %v, want that to %s", r, err, want)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.call(ctx, order{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	_, pending, err := o.post(order{Verb: verbStop})
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := await(t.Context(), o.ended, pending); !errors.Is(err, errEnded) {
		t.Errorf("ended: %v", err)
	}
	if _, err := o.call(t.Context(), order{}); !errors.Is(err, errEnded) {
		t.Errorf("after the end: %v", err)
	}
}

// TestLastWords wants what a machine says before it ends to count more than
// that it ended.
func TestLastWords(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	if err := theirs.send(reply{Error: &remoteError{Text: "mount: no"}}); err != nil {
		t.Fatal(err)
	}
	if err := theirs.conn.Close(); err != nil {
		t.Fatal(err)
	}
	o := newOrders(ours)
	<-o.ended
	for range 20 { // a choice among ready channels is random
		if err := o.ready(t.Context()); err == nil || err.Error() != "mount: no" {
			t.Fatalf("error %v", err)
		}
		o.first <- reply{Error: &remoteError{Text: "mount: no"}}
	}
}
