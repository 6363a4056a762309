package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// elfFile is the least of a program that names a loader and the libraries it is linked with.
func elfFile(t *testing.T, loader string, libraries ...string) []byte {
	t.Helper()
	strings, dynamic := []byte{0}, []elf.Dyn64{}
	for _, l := range libraries {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(strings))})
		strings = append(strings, l+"\x00"...)
	}
	names := []byte("\x00.interp\x00.dynamic\x00.strings\x00.names\x00")
	var table bytes.Buffer
	write := func(w *bytes.Buffer, v any) {
		if err := binary.Write(w, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	write(&table, append(dynamic, elf.Dyn64{}))
	contents := [][]byte{[]byte(loader + "\x00"), table.Bytes(), strings, names}
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS)},
		{Name: 9, Type: uint32(elf.SHT_DYNAMIC), Link: 3, Entsize: 16},
		{Name: 18, Type: uint32(elf.SHT_STRTAB)},
		{Name: 27, Type: uint32(elf.SHT_STRTAB)},
	}
	if loader == "" {
		sections[1].Name = 0
	}
	const header, section = 64, 64
	offset := uint64(header + section*len(sections))
	for i, content := range contents {
		sections[i+1].Off, sections[i+1].Size = offset, uint64(len(content))
		offset += uint64(len(content))
	}
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: header, Ehsize: header,
		Shentsize: section, Shnum: uint16(len(sections)), Shstrndx: 4,
	}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	var out bytes.Buffer
	write(&out, h)
	write(&out, sections)
	for _, content := range contents {
		out.Write(content)
	}
	return out.Bytes()
}

func TestAddProgram(t *testing.T) {
	t.Parallel()
	const libraries = "usr/lib/x86_64-linux-gnu/"
	root := t.TempDir()
	for name, content := range map[string][]byte{
		"usr/sbin/tool":            elfFile(t, "/lib64/ld.so", "liba.so.1", "libc.so.6"),
		"usr/bin/broken":           elfFile(t, "/lib64/ld.so", "libgone.so.1"),
		"usr/bin/static":           elfFile(t, ""),
		"usr/lib64/ld.so":          []byte("loader"),
		libraries + "liba.so.1":    elfFile(t, "", "libb.so.2", "libc.so.6"),
		libraries + "libb.so.2.7":  elfFile(t, "", "liba.so.1"), // in a circle
		libraries + "libc.so.6":    elfFile(t, ""),
		libraries + "libother.so1": elfFile(t, ""),
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("libb.so.2.7", filepath.Join(root, libraries, "libb.so.2")); err != nil {
		t.Fatal(err)
	}
	tr := tree{}
	if err := errors.Join(tr.addProgram(root, "tool"), tr.addProgram(root, "static")); err != nil {
		t.Fatal(err)
	}
	want := []string{"usr/bin/static", "usr/bin/tool", libraries + "liba.so.1", libraries + "libb.so.2", libraries + "libc.so.6", "usr/lib64/ld.so"}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(tr))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := tr.addProgram(root, "broken"); err == nil || !strings.Contains(err.Error(), "libgone.so.1") {
		t.Errorf("error for a library that is not there: %v", err)
	}
	if err := tr.addProgram(root, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error for a program that is not there: %v", err)
	}
}
