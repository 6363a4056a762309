package sysfs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// attrMax is what an attribute holds at most. The kernel's limit is one page;
// this is the smallest page there is, and far more than any attribute read
// here needs.
const attrMax = 4096

var errTooLong = errors.New("more than 4096 bytes, which is no attribute")

// dir is an open directory of attributes.
//
// An attribute is read by openat, read and close and nothing else. A snapshot
// of a node reads thousands, so it matters that os.ReadFile would add a stat,
// a second read that finds the end, an entry in the poller and an allocation
// or two. The poller would also be wrong: kernfs lets an attribute be polled
// for changes, so an attribute that answers EAGAIN would put its reader to
// sleep for good.
type dir struct {
	fd   int
	path string // as opened, for errors
	real string // below sysfs' root, without links
	*readings
}

// readings is what the directories of one device share: the buffer and the
// errors of all that could not be read.
type readings struct {
	buf    [attrMax + 1]byte // one more than fits, to see what does not
	errs   []error
	gone   error // of a part without which the rest is of no use
	before *before
}

// open opens a directory given below the sysfs mount, which may be a link as
// in /sys/class.
func (fs FS) open(parent, name string) (*dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	d, err := fs.openDir(fs.Sys(parent, name))
	if err != nil {
		return nil, err
	}
	d.before.call(d.path)
	target, err := readlinkat(unix.AT_FDCWD, d.path, d.buf[:])
	switch {
	case err == nil:
		d.real = below(parent, target)
	case errors.Is(err, unix.ENOENT): // without its path nobody knows what it belongs to
		d.close()
		return nil, pathError("readlink", d.path, err)
	default:
		d.real = path.Join(parent, name)
	}
	return d, nil
}

// openDir opens a directory that need not be one of sysfs.
func (fs FS) openDir(name string) (*dir, error) {
	fs.before.call(name)
	fd, err := openat(unix.AT_FDCWD, name, unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &dir{fd: fd, path: name, readings: &readings{before: fs.before}}, nil
}

// close closes the directory. Directories below it stay open.
func (d *dir) close() { _ = unix.Close(d.fd) }

// done returns the errors of all readings so far or, if the directory went
// meanwhile, only that: what was read of it is then of no use.
func (d *dir) done() error {
	if err := cmp.Or(d.gone, d.still()); err != nil {
		return err
	}
	return errors.Join(d.errs...)
}

// still returns an error if the directory is no more. A device that came back
// has another directory at the same path, while the one that is open stays
// empty.
func (d *dir) still() error {
	d.before.call(d.path)
	var opened, now unix.Stat_t
	if err := unix.Fstat(d.fd, &opened); err != nil {
		return pathError("stat", d.path, err)
	}
	if err := stat(d.path, &now); err != nil {
		return pathError("stat", d.path, err)
	}
	if opened.Ino != now.Ino || opened.Dev != now.Dev {
		return fmt.Errorf("%s: it was replaced while it was read: %w", d.path, os.ErrNotExist)
	}
	return nil
}

// openSub opens a directory below this one.
func (d *dir) openSub(name string) (*dir, error) {
	full := filepath.Join(d.path, name)
	d.before.call(full)
	fd, err := openat(d.fd, name, unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", full, err)
	}
	return &dir{fd: fd, path: full, real: path.Join(d.real, name), readings: d.readings}, nil
}

// sub is openSub for a directory that may be absent: nil then.
func (d *dir) sub(name string) *dir {
	s, err := d.openSub(name)
	if err != nil {
		d.fail("", err)
		return nil
	}
	return s
}

// fail notes that an attribute could not be read or understood, unless it is
// merely absent.
func (d *dir) fail(name string, err error) {
	var errno unix.Errno
	switch {
	case absent(err):
	case name == "":
		d.errs = append(d.errs, err)
	case errors.As(err, &errno):
		d.errs = append(d.errs, pathError("read", filepath.Join(d.path, name), err))
	default:
		d.errs = append(d.errs, fmt.Errorf("%s: %w", filepath.Join(d.path, name), err))
	}
}

// read reads an attribute without its trailing newline. The bytes are good
// until the next reading.
func (d *dir) read(name string) ([]byte, error) {
	d.before.callIn(d, name)
	// O_NONBLOCK: in a tree that is not the kernel's, a name may be a FIFO.
	fd, err := openat(d.fd, name, unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	n, err := read(fd, d.buf[:])
	_ = unix.Close(fd)
	switch {
	case err != nil:
		return nil, err
	case n > attrMax:
		return nil, errTooLong
	case n > 0 && d.buf[n-1] == '\n':
		n--
	}
	return d.buf[:n], nil
}

// text reads an attribute that is text; empty if it is absent.
func (d *dir) text(name string) string {
	b, err := d.read(name)
	if err != nil {
		d.fail(name, err)
	}
	return string(b)
}

// value reads an attribute and parses it; none if it is absent or cannot be
// parsed.
func value[T any](d *dir, name string, parse func(string) (T, error), none T) T {
	b, err := d.read(name)
	if err != nil {
		d.fail(name, err)
		return none
	}
	v, err := parse(string(b))
	if err != nil {
		d.fail(name, err)
		return none
	}
	return v
}

// link returns where a symbolic link leads, as a path below sysfs' root. It
// need not exist. Without a link of that name it is empty.
func (d *dir) link(name string) string {
	d.before.callIn(d, name)
	target, err := readlinkat(d.fd, name, d.buf[:])
	if err != nil {
		d.fail(name, err)
		return ""
	}
	return below(d.real, target)
}

// linkName returns the last element of where a symbolic link leads, by which
// sysfs names drivers, masters and PCI functions. Without a link of that name
// it is empty.
func (d *dir) linkName(name string) string {
	d.before.callIn(d, name)
	target, err := readlinkat(d.fd, name, d.buf[:])
	if err != nil {
		d.fail(name, err)
		return ""
	}
	return path.Base(target)
}

// names lists the directory in no order.
func (d *dir) names() []string {
	d.before.call(d.path)
	var found []string
	for {
		n, err := unix.ReadDirent(d.fd, d.buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			d.fail(".", err)
		}
		if n <= 0 {
			return found
		}
		_, _, found = unix.ParseDirent(d.buf[:n], -1, found)
	}
}

// numbers lists those names that are numbers, in ascending order.
func (d *dir) numbers() []int {
	var found []int
	for _, name := range d.names() {
		if n, ok := parseIndex(name); ok {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

// parseIndex parses a number as the kernel puts it into a name: digits without
// a leading zero.
func parseIndex(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && (s == "0" || s[0] != '0')
}

// below returns the path to which a link in the directory base leads. As
// sysfs is the whole world to its links, none leads out of it.
func below(base, target string) string {
	if !path.IsAbs(target) {
		target = path.Join("/", base, target)
	}
	return path.Clean(target)[1:]
}

func parseInt(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, wants(s, "a decimal number")
	}
	return n, nil
}

// parseHex parses 0x15b3 as a number of at most the given width.
func parseHex(s string, bits int) (uint64, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	n, err := strconv.ParseUint(digits, 16, bits)
	if !ok || err != nil {
		return 0, wants(s, fmt.Sprintf("0x and a hexadecimal number of %d bits", bits))
	}
	return n, nil
}

// parseDecimal parses 2.5 and 400; no sign, exponent, infinity or hexadecimal
// number, which strconv.ParseFloat knows and the kernel does not write.
func parseDecimal(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789.") != "" {
		return 0, wants(s, "a decimal number")
	}
	return f, nil
}

// afterNumber returns the name in "4: ACTIVE", in which the kernel shows an
// enumerated value. What has another form it returns whole.
func afterNumber(s string) string {
	number, name, ok := strings.Cut(s, ": ")
	if _, isNumber := parseIndex(number); !ok || !isNumber {
		return s
	}
	return name
}

// wants is the error of an attribute that holds something else.
func wants(got, want string) error {
	return fmt.Errorf("%.64q, want %s", got, want)
}

// absent reports whether an error says that an attribute is not there or has
// no value, which devices say of different attributes at different times: a
// netdev that is down has no speed, and a port that goes has nothing.
func absent(err error) bool {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case unix.ENOENT, unix.EINVAL, unix.EOPNOTSUPP, unix.ENODEV, unix.ENXIO, unix.ESRCH:
		return true
	}
	return false
}

// goneError is an errno that says that the object of a file is no more, while
// the file was still open. It is os.ErrNotExist as much as ENOENT is.
type goneError struct{ unix.Errno }

func (e goneError) Unwrap() error        { return e.Errno }
func (e goneError) Is(target error) bool { return target == os.ErrNotExist }

func pathError(op, name string, err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) && (errno == unix.ENODEV || errno == unix.ENXIO || errno == unix.ESRCH) {
		err = goneError{errno}
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}

// readAttr reads one attribute by its path.
func readAttr(name string) (string, error) {
	d := dir{fd: unix.AT_FDCWD, readings: new(readings)}
	b, err := d.read(name)
	if err != nil {
		return "", pathError("read", name, err)
	}
	return string(b), nil
}

func openat(dirfd int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dirfd, name, flags|unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func stat(name string, s *unix.Stat_t) error {
	for {
		if err := unix.Stat(name, s); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func read(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func readlinkat(dirfd int, name string, buf []byte) (string, error) {
	n, err := unix.Readlinkat(dirfd, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
