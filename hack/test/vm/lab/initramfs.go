//go:build linux

package lab

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"railhead/hack/test/vm/plan"
)

// writeInitramfs writes an archive with pid 1 as /init and the boot modules. It is not compressed: unpacking takes
// longer under emulation than reading.
func writeInitramfs(path, init, bootDir string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(f)
	archive := cpioWriter{w: buffered}
	archive.directory(strings.TrimPrefix(plan.BootModules, "/"))
	archive.file("init", init, 0o755)
	modules, err := filepath.Glob(filepath.Join(bootDir, "*.ko"))
	if err != nil {
		return err
	}
	for _, module := range modules {
		archive.file(strings.TrimPrefix(plan.BootModules, "/")+"/"+filepath.Base(module), module, 0o644)
	}
	archive.end()
	if archive.err == nil {
		archive.err = buffered.Flush()
	}
	if err := f.Close(); archive.err == nil {
		archive.err = err
	}
	return archive.err
}

// cpioWriter writes the archive format that the kernel unpacks ("newc"). The first error stays and stops the rest.
type cpioWriter struct {
	w     io.Writer
	err   error
	inode int
}

// Types of files in an archive, as in stat(2).
const (
	cpioDirectory = 0o040000
	cpioRegular   = 0o100000
)

// directory adds a directory.
func (c *cpioWriter) directory(name string) { c.entry(name, cpioDirectory|0o755, nil) }

// file adds a file with the content of another.
func (c *cpioWriter) file(name, content string, mode int) {
	if c.err != nil {
		return
	}
	raw, err := os.ReadFile(content)
	if err != nil {
		c.err = err
		return
	}
	c.entry(name, cpioRegular|mode, raw)
}

// end writes the record that ends an archive.
func (c *cpioWriter) end() { c.entry("TRAILER!!!", 0, nil) }

// entry writes a header of thirteen hexadecimal fields, the name and the content, the latter two filled up to multiples
// of four bytes.
func (c *cpioWriter) entry(name string, mode int, content []byte) {
	if c.err != nil {
		return
	}
	c.inode++
	const magic, links = "070701", 1
	header := fmt.Sprintf("%s%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", magic,
		c.inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name)
	c.write([]byte(header))
	c.write(content)
}

// write writes bytes and fills up.
func (c *cpioWriter) write(raw []byte) {
	if c.err != nil {
		return
	}
	if _, c.err = c.w.Write(raw); c.err != nil {
		return
	}
	_, c.err = c.w.Write(make([]byte, -len(raw)&3))
}
