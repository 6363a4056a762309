package cluster

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// diskFile is where on the disk what is known is kept: a line that says of which
// node and when, a line for each object, and a last one with the sum of all before.
const diskFile = "cluster.jsonl"

// diskVersion is that of the lines. Who cannot read them begins without.
const diskVersion = 1

// heading is the first line.
type heading struct {
	Version int       `json:"version"`
	Node    string    `json:"node"`
	UID     types.UID `json:"uid,omitempty"` // of the Node object; empty where that was not known
	At      time.Time `json:"at"`            // as of when it was known
	Kinds   []string  `json:"kinds"`         // that were known
}

// entry is the line of an object.
type entry struct {
	Kind   int             `json:"kind"` // which of the heading's
	Object json.RawMessage `json:"object"`
}

// lastLine is the last line, after what a sum is of.
func lastLine(sum hash.Hash) string { return fmt.Sprintf("{\"sha256\":\"%x\"}\n", sum.Sum(nil)) }

// lastSize is its size.
const lastSize = int64(len(`{"sha256":""}`) + 2*sha256.Size + 1)

// part is what is kept of one kind.
type part struct {
	title   string
	isKnown func() bool                       // what was never known is not kept
	each    func(tell func(any) error) error  // of what is kept
	parse   func(text []byte) (func(), error) // of one of these; what it returns takes it
	done    func()                            // all were taken
}

// lockDirectory locks a directory until unlock, or the end of the process: those that
// write in it have it together, and who cleans it has it alone.
func lockDirectory(path string, how int) (unlock func() error, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	lock := func(how int) error {
		for {
			if err := unix.Flock(int(dir.Fd()), how); !errors.Is(err, unix.EINTR) {
				return os.NewSyscallError("flock "+path, err)
			}
		}
	}
	if err := lock(how); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	// Closed alone it would stay locked while a process that starts just now has it.
	return func() error { return errors.Join(lock(unix.LOCK_UN), dir.Close()) }, nil
}

// writeParts makes a file hold what is known, in one step: after a crash there is
// what there was, or this.
func writeParts(path string, h heading, parts []part) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := lockDirectory(filepath.Dir(path), unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	f, err := renameio.TempFile(filepath.Dir(path), path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	out, sum := bufio.NewWriter(f), sha256.New()
	if err := encodeParts(io.MultiWriter(out, sum), h, parts); err != nil {
		return err
	}
	if _, err := out.WriteString(lastLine(sum)); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// encodeParts writes all lines but the last.
func encodeParts(out io.Writer, h heading, parts []part) error {
	var kept []part
	h.Kinds = nil
	for _, p := range parts {
		if p.isKnown() {
			kept, h.Kinds = append(kept, p), append(h.Kinds, p.title)
		}
	}
	lines := json.NewEncoder(out)
	if err := lines.Encode(h); err != nil {
		return err
	}
	for i, p := range kept {
		err := p.each(func(object any) error {
			return lines.Encode(struct {
				Kind   int `json:"kind"`
				Object any `json:"object"`
			}{i, object})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", p.title, err)
		}
	}
	return nil
}

// readParts takes what a file holds of some parts: all of it, or where anything is
// wrong with it, nothing.
func readParts(path string, isOurs func(heading) error, parts []part) (h heading, err error) {
	there, err := os.Stat(path)
	if err != nil {
		return h, err
	}
	if !there.Mode().IsRegular() {
		return h, fmt.Errorf("%s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if h, err = takeParts(f, there.Size(), isOurs, parts); err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// takeParts is readParts of an open file.
func takeParts(f io.ReaderAt, size int64, isOurs func(heading) error, parts []part) (h heading, err error) {
	size = max(size-lastSize, 0)
	if err := checkSum(f, size); err != nil {
		return h, err
	}
	for _, isTaken := range []bool{false, true} { // and nothing is, unless all can be
		lines := json.NewDecoder(bufio.NewReader(io.NewSectionReader(f, 0, size)))
		if h, err = decodeParts(lines, isOurs, parts, isTaken); err != nil {
			return h, err
		}
	}
	return h, nil
}

// checkSum holds the beginning of a file against all that follows.
func checkSum(f io.ReaderAt, size int64) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	last, err := io.ReadAll(io.NewSectionReader(f, size, lastSize))
	if err != nil {
		return err
	}
	if string(last) != lastLine(sum) {
		return errors.New("it is damaged: its last line is not the sum of all before")
	}
	return nil
}

// decodeParts reads all lines but the last, and takes what they say if it is to.
func decodeParts(lines *json.Decoder, isOurs func(heading) error, parts []part, isTaken bool) (heading, error) {
	var h heading
	if err := lines.Decode(&h); err != nil {
		return h, fmt.Errorf("line 1: %w", err)
	}
	if h.Version != diskVersion {
		return h, fmt.Errorf("it has version %d, want %d", h.Version, diskVersion)
	}
	if err := isOurs(h); err != nil {
		return h, err
	}
	by := make([]*part, len(h.Kinds))
	for i, title := range h.Kinds {
		if at := slices.IndexFunc(parts, func(p part) bool { return p.title == title }); at >= 0 {
			by[i] = &parts[at]
		}
	}
	for n := 2; ; n++ {
		put, err := decodeEntry(lines, by)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return h, fmt.Errorf("line %d: %w", n, err)
		}
		if isTaken {
			put()
		}
	}
	for _, p := range by {
		if p != nil && isTaken {
			p.done()
		}
	}
	return h, nil
}

// decodeEntry reads the line of an object; after the last one the error is io.EOF. Of
// a kind that nobody wants, nothing is to be taken.
func decodeEntry(lines *json.Decoder, by []*part) (put func(), err error) {
	var e entry
	if err := lines.Decode(&e); err != nil {
		return nil, err
	}
	if e.Kind < 0 || e.Kind >= len(by) {
		return nil, fmt.Errorf("it is of kind %d, and line 1 names %d", e.Kind, len(by))
	}
	p := by[e.Kind]
	if p == nil {
		return func() {}, nil
	}
	if put, err = p.parse(e.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", p.title, err)
	}
	return put, nil
}
