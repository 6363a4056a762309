package fakekernel

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// delay is a time that a kind of request takes.
type delay struct {
	time  time.Duration
	ended chan struct{} // closed when it is no longer so
}

// everything is the object of a delay that is of all.
const everything = math.MinInt

// Delay has a kind of request take a time from now on, 0 for none; where objects
// are given, as to Refuse, only requests about one of them, and a dump of all
// takes it once for each of them. It takes the place of what was said of this
// kind before, and requests that wait for what has another time by now are
// answered at once. Requests wait for none but those of the same client.
//
// Closing the client ends a request by netlink. An ioctl takes its time, as in
// a kernel. Less than two milliseconds are slept outside of Go's timers, which
// are not good to less than one; synctest does not make them pass.
func (k *Kernel) Delay(r Request, d time.Duration, objects ...int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(objects) == 0 {
		objects = []int{everything}
	}
	for object, old := range k.delays[r] {
		if old.time != d || !slices.Contains(objects, object) {
			close(old.ended)
			delete(k.delays[r], object)
		}
	}
	for _, object := range objects {
		if _, ok := k.delays[r][object]; !ok && d > 0 {
			k.delays[r] = with(k.delays[r], object, delay{time: d, ended: make(chan struct{})})
		}
	}
}

// arrive counts a request, finds what it is about and waits as long as it takes.
// The error is fs.ErrClosed when closed is closed meanwhile.
func (k *Kernel) arrive(q *question, closed <-chan struct{}) error {
	k.mu.Lock()
	k.asked[q.request]++
	if q.locate != nil {
		q.object, q.about = q.locate(k, *q)
	}
	delays := k.delaysOf(*q)
	k.mu.Unlock()
	select {
	case <-closed:
		return fs.ErrClosed
	default:
	}
	for _, d := range delays {
		if err := d.wait(closed); err != nil {
			return err
		}
	}
	return nil
}

// delaysOf returns how long a request takes, a time after another.
func (k *Kernel) delaysOf(q question) (delays []delay) {
	for object, d := range k.delays[q.request] {
		if object == everything || q.about && object == q.object || q.dump && !q.about {
			delays = append(delays, d)
		}
	}
	return delays
}

func (d delay) wait(closed <-chan struct{}) error {
	if d.time < 2*time.Millisecond {
		sleep(d.time)
		return nil
	}
	timer := time.NewTimer(d.time)
	defer timer.Stop()
	select {
	case <-closed:
		return fs.ErrClosed
	case <-timer.C:
	case <-d.ended:
	}
	return nil
}

// sleep sleeps in a system call, as a request to a kernel does.
func sleep(d time.Duration) {
	rest := unix.NsecToTimespec(d.Nanoseconds())
	for {
		left := rest
		if err := unix.Nanosleep(&rest, &left); !errors.Is(err, unix.EINTR) {
			return
		}
		rest = left
	}
}
