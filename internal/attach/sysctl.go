package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"railhead/internal/attach/routing"
)

// sysctls are the settings of the network namespace that the calling thread is
// in: a directory proc/sys.
type sysctls string

func (a *Attacher) sysctls() sysctls { return sysctls(a.config.Proc + "/sys") }

// write sets a value. Where a Sysctl is optional, it may not be there.
func (s sysctls) write(what routing.Sysctl) error {
	err := s.file(what.Path, unix.O_WRONLY, func(fd int) error {
		_, err := unix.Write(fd, []byte(what.Value))
		return err
	})
	if err == nil || what.Optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("sysctl %s = %q: %w", what.Path, what.Value, err)
}

// read returns a value without the line's end.
func (s sysctls) read(path string) (string, error) {
	buf := make([]byte, 4096)
	n := 0
	err := s.file(path, unix.O_RDONLY, func(fd int) (err error) {
		n, err = unix.Read(fd, buf)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("sysctl %s: %w", path, err)
	}
	return strings.TrimRight(string(buf[:max(n, 0)]), "\n"), nil
}

// file opens a setting without package os, which would also register it with its poller.
func (s sysctls) file(path string, mode int, fn func(fd int) error) error {
	for {
		fd, err := unix.Open(string(s)+"/"+path, mode|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		err = fn(fd)
		for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			err = fn(fd) // IPv6's try for a lock that others hold
		}
		return errors.Join(err, unix.Close(fd))
	}
}

// tuned are the settings that the plugin tuning asks for on an interface, in the
// order of their names.
func tuned(i Interface) ([]routing.Sysctl, error) {
	var all []routing.Sysctl
	var errs []error
	for _, name := range sortedKeys(i.Tuning.Sysctls) {
		path := sysctlPath(name, i.Name)
		if !strings.HasPrefix(path, "net/") || path != filepath.Clean(path) {
			errs = append(errs, fmt.Errorf("interface %s: sysctl %q: want one of the pod's network, such as net.ipv4.conf.IFNAME.rp_filter", i.Name, name))
			continue
		}
		all = append(all, routing.Sysctl{Owner: i.Name, Path: path, Value: i.Tuning.Sysctls[name]})
	}
	return all, errors.Join(errs...)
}

// sysctlPath is the file of a name with dots or slashes. As in sysctl(8) the
// first of them says which; with dots, a slash stands for the dot in the name of
// a link.
func sysctlPath(name, link string) string {
	if first := strings.IndexAny(name, "./"); first >= 0 && name[first] == '.' {
		name = strings.NewReplacer(".", "/", "/", ".").Replace(name)
	}
	parts := strings.Split(name, "/")
	for n := range parts {
		if parts[n] == "IFNAME" {
			parts[n] = link
		}
	}
	return strings.Join(parts, "/")
}
