package sysfs

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CounterDir is a directory of counters of an RDMA device or port. Its files
// are listed once and read again and again. It is not safe for concurrent use.
type CounterDir struct {
	Name  string   // "counters", "hw_counters", "cm_tx_msgs", "cm_tx_retries", "cm_rx_msgs", "cm_rx_duplicates"
	Files []string // names of the counters, sorted

	place string   // below sysfs' root
	names [][]byte // of Files, ended by a NUL
	fs    FS       // where full is
	full  []byte   // path of the directory in fs, ended by a NUL
	buf   [counterMax]byte
}

// CounterValue is what a counter was when it was read.
type CounterValue struct {
	Value   uint64
	Present bool // false where the counter has no value, and Value means nothing
}

// counterMax holds a number of 64 bits, and what the kernel says in place of
// one.
const counterMax = 64

// PortCounters returns the directories of counters of a port, those that it
// has: of the port management agent, of the driver, and of ib_cm. No counter is
// read.
func (fs FS) PortCounters(device string, port int) ([]*CounterDir, error) {
	return fs.counterDirs(device, path.Join("ports", strconv.Itoa(port)),
		"counters", "hw_counters", "cm_tx_msgs", "cm_tx_retries", "cm_rx_msgs", "cm_rx_duplicates")
}

// DeviceCounters returns hw_counters of an RDMA device itself, which some
// drivers have in place of or beside that of its ports; none where it has none.
func (fs FS) DeviceCounters(device string) ([]*CounterDir, error) {
	return fs.counterDirs(device, ".", "hw_counters")
}

func (fs FS) counterDirs(device, below string, names ...string) ([]*CounterDir, error) {
	d, err := fs.open(classInfiniband, device)
	if err != nil {
		return nil, err
	}
	defer d.close()
	within, err := d.openSub(below)
	if err != nil {
		return nil, err
	}
	defer within.close()
	var found []*CounterDir
	for _, name := range names {
		if sub := within.sub(name); sub != nil {
			found = append(found, newCounterDir(name, path.Join(classInfiniband, device, below, name), sub.names()))
			sub.close()
		}
	}
	return found, within.done()
}

func newCounterDir(name, place string, files []string) *CounterDir {
	// lifespan is a setting: how many milliseconds old the others may be.
	files = slices.DeleteFunc(files, func(f string) bool { return f == "lifespan" })
	slices.Sort(files)
	c := &CounterDir{Name: name, Files: files, place: place}
	for _, f := range files {
		c.names = append(c.names, append([]byte(f), 0))
	}
	return c
}

// Read reads the files with the given indexes in Files, or all of them where
// indexes is nil, into the elements of dst with these indexes, and clears the
// others. dst has as many elements as Files. Each file is opened, read once and
// closed; that may cost a command of the device's firmware, on mlx5 it does for
// each file of "counters". Where no file fails, Read allocates nothing unless
// fs is another than the time before.
//
// A file that is gone, has no value or cannot be read leaves its element not
// present; the latter is an error too, a [*fs.PathError] each, joined, and hides
// no other file. The error is
// os.ErrNotExist where the directory is gone.
func (c *CounterDir) Read(fs FS, indexes []int, dst []CounterValue) error {
	clear(dst)
	dir, err := c.open(fs)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	var errs []error
	if indexes == nil {
		for i := range c.Files {
			errs = c.read(dir, i, dst, errs)
		}
	}
	for _, i := range indexes {
		errs = c.read(dir, i, dst, errs)
	}
	return errors.Join(errs...)
}

// open opens the directory for one Read: open files would keep another network
// namespace's sysfs mounted.
func (c *CounterDir) open(fs FS) (int, error) {
	if c.full == nil || c.fs != fs {
		c.fs, c.full = fs, append([]byte(fs.Sys(c.place)), 0)
	}
	dir, err := openatBytes(unix.AT_FDCWD, c.full, unix.O_DIRECTORY)
	if err != nil {
		return -1, pathError("open", fs.Sys(c.place), err)
	}
	return dir, nil
}

// read reads one file and returns errs, with one more if it failed.
func (c *CounterDir) read(dir, i int, dst []CounterValue, errs []error) []error {
	v, err := c.value(dir, i)
	if err != nil {
		return c.fail(i, err, errs)
	}
	dst[i] = v
	return errs
}

func (c *CounterDir) fail(i int, err error, errs []error) []error {
	if absent(err) {
		return errs
	}
	return append(errs, pathError("read", filepath.Join(c.fs.Sys(c.place), c.Files[i]), err))
}

func (c *CounterDir) value(dir, i int) (CounterValue, error) {
	fd, err := openatBytes(dir, c.names[i], unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return CounterValue{}, err
	}
	n, err := read(fd, c.buf[:])
	_ = unix.Close(fd)
	if err != nil {
		return CounterValue{}, err
	}
	return parseCounter(c.buf[:n])
}

// parseCounter parses what a counter's file holds: a number, or the kernel's
// word for a port that has no agent to ask. It does not
// allocate where there is no error.
func parseCounter(b []byte) (CounterValue, error) {
	digits := b
	if len(digits) > 0 && digits[len(digits)-1] == '\n' {
		digits = digits[:len(digits)-1]
	}
	if string(digits) == "N/A (no PMA)" {
		return CounterValue{}, nil
	}
	var v uint64
	for _, d := range digits {
		digit := uint64(d - '0')
		if digit > 9 || v > (^uint64(0)-digit)/10 {
			return CounterValue{}, wants(strings.TrimSuffix(string(b), "\n"), "a decimal number of 64 bits")
		}
		v = v*10 + digit
	}
	if len(digits) == 0 {
		return CounterValue{}, wants("", "a decimal number of 64 bits")
	}
	return CounterValue{Value: v, Present: true}, nil
}

// openatBytes is openat of a name that ends with a NUL, so that it need not be
// copied.
func openatBytes(dirfd int, name []byte, flags int) (int, error) {
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(dirfd), uintptr(unsafe.Pointer(unsafe.SliceData(name))),
			uintptr(flags|unix.O_RDONLY|unix.O_CLOEXEC), 0, 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, errno
		}
	}
}
