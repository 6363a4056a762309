package api

import (
	"net/http"
	"net/http/httptrace"
	"os"
	"sync/atomic"
	"syscall"

	"railhead/internal/ipam/journal"
)

// KillPoint is where a process kills itself, by SIGKILL: at a write to the API server
// or at an operation on its disk, counted from its start.
type KillPoint struct {
	At   int    // the number of the write or operation, from 1; 0: it lives
	Disk bool   // an operation on the disk, not a write to the API server
	When Moment // of that write or operation
}

// Moment is when, of a write or an operation on the disk, a process dies.
type Moment string

// Moments of a write to the API server, and of an operation on the disk.
const (
	Before  Moment = "before"  // nothing of it leaves the process
	Between Moment = "between" // a request was sent and its answer is not awaited; half of what was to be appended is
	After   Moment = "after"   // it is done, and the process does not get to know it
)

// selfKiller counts what its process does, and kills it when the time has come.
type selfKiller struct {
	KillPoint
	count atomic.Int64
}

// now counts, and says which moment of this write or operation is the last.
func (d *selfKiller) now(disk bool) Moment {
	if d.At == 0 || d.Disk != disk || d.count.Add(1) != int64(d.At) {
		return ""
	}
	return d.When
}

// kill ends this process as the kernel would, without a last word.
func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// around is a transport whose writes count.
func (d *selfKiller) around(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return next.RoundTrip(r)
		}
		moment := d.now(false)
		switch moment {
		case Before:
			kill()
		case Between:
			trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { kill() }}
			r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
		}
		response, err := next.RoundTrip(r)
		if moment != "" {
			kill()
		}
		return response, err
	})
}

// killingDisk is a disk whose changes count.
type killingDisk struct {
	journal.Disk
	point *selfKiller
}

// Append implements journal.Disk.
func (d killingDisk) Append(name string, data []byte) error {
	return d.change(func() error { return d.Disk.Append(name, data) }, func() error { return d.Disk.Append(name, data[:len(data)/2]) })
}

// Sync implements journal.Disk.
func (d killingDisk) Sync(name string) error {
	return d.change(func() error { return d.Disk.Sync(name) }, nil)
}

// Truncate implements journal.Disk.
func (d killingDisk) Truncate(name string, size int64) error {
	return d.change(func() error { return d.Disk.Truncate(name, size) }, nil)
}

// Replace implements journal.Disk.
func (d killingDisk) Replace(name string, data []byte) error {
	return d.change(func() error { return d.Disk.Replace(name, data) }, nil)
}

// change does an operation, unless the process dies before it or, where there is
// such a thing, half done.
func (d killingDisk) change(do, half func() error) error {
	moment := d.point.now(true)
	if moment == "" {
		return do()
	}
	switch {
	case moment == Between && half != nil:
		_ = half()
	case moment != Before:
		_ = do()
	}
	kill()
	return nil
}
