package box

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// drainLimit is how long what a program wrote is waited for after its end: a
// process that it left behind may hold the pipe open for ever.
const drainLimit = time.Second

// pipeSize is how much a pipe of the kernel holds (pipe(7)).
const pipeSize = 64 << 10

// stdio is what connects a program with the readers and writers of a command.
type stdio struct {
	theirs []*os.File // stdin, stdout and stderr of the program
	opened []*os.File // those of theirs that are ours to close
	ours   []*os.File // our ends of pipes that the program writes to
	copies []func() error
	feed   func()

	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

// open makes pipes where they are needed.
func (s *stdio) open(c Command) error {
	if err := s.openInput(c.Stdin); err != nil {
		return err
	}
	if err := s.openOutput(c.Stdout); err != nil {
		return err
	}
	if c.Stderr != nil && c.Stderr == c.Stdout {
		s.theirs = append(s.theirs, s.theirs[1])
		return nil
	}
	return s.openOutput(c.Stderr)
}

func (s *stdio) openInput(from io.Reader) error {
	switch from := from.(type) {
	case nil:
		return s.openNull()
	case *os.File:
		s.theirs = append(s.theirs, from)
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs, s.opened = append(s.theirs, r), append(s.opened, r)
	s.feed = func() {
		_, _ = io.Copy(w, from) // a program need not read all its input
		_ = w.Close()
	}
	return nil
}

func (s *stdio) openOutput(to io.Writer) error {
	switch to := to.(type) {
	case nil:
		return s.openNull()
	case *os.File:
		s.theirs = append(s.theirs, to)
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs, s.opened, s.ours = append(s.theirs, w), append(s.opened, w), append(s.ours, r)
	s.copies = append(s.copies, func() error {
		_, err := io.Copy(to, r)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return copyRest(to, r)
		}
		return err
	})
	return nil
}

// copyRest copies what is in a pipe, and does not wait for more: a program that
// has ended has written all of its own, however late we come to read it.
func copyRest(to io.Writer, from *os.File) error {
	if err := from.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	pipe, err := from.SyscallConn()
	if err != nil {
		return err
	}
	rest := make([]byte, pipeSize)
	var n int
	var readErr error
	err = pipe.Read(func(fd uintptr) bool {
		n, readErr = unix.Read(int(fd), rest)
		return true
	})
	if errors.Is(readErr, unix.EAGAIN) {
		return nil
	}
	if err := errors.Join(err, readErr); err != nil {
		return err
	}
	_, err = to.Write(rest[:n])
	return err
}

func (s *stdio) openNull() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s.theirs, s.opened = append(s.theirs, null), append(s.opened, null)
	return nil
}

// start begins to copy, once the program has its ends of the pipes.
func (s *stdio) start() {
	closeFiles(s.opened)
	s.opened = nil
	if s.feed != nil {
		go s.feed()
	}
	for _, copying := range s.copies {
		s.wg.Go(func() {
			err := copying()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, err)
		})
	}
}

// drain waits for the rest of what the program wrote.
func (s *stdio) drain() error {
	for _, r := range s.ours {
		if err := r.SetReadDeadline(time.Now().Add(drainLimit)); err != nil {
			return err
		}
	}
	s.wg.Wait()
	return errors.Join(s.errs...)
}

// close lets go of everything, also of copies still under way.
func (s *stdio) close() {
	closeFiles(s.opened)
	closeFiles(s.ours)
}
