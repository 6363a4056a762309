package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"railhead/hack/debian"
	"railhead/hack/program"
)

// toolPackages have the programs of toolPrograms; toolPrograms are taken with the libraries they need, and nothing else.
const (
	toolPackages = "busybox-static bash iproute2 ethtool catatonit"
	toolPrograms = "busybox bash ip bridge tc ss rdma devlink ethtool catatonit"
)

// tools is what tests and people look around with: a shell and its usual programs, those that show links, queues and
// sockets, and our probe. Left alone it waits until it is told to end.
func (w *workshop) tools(ctx context.Context) (recipe, error) {
	packages, err := w.packages(ctx, strings.Fields(toolPackages)...)
	if err != nil {
		return recipe{}, err
	}
	probe, sum, err := w.build(ctx, probePackage)
	return recipe{
		inputs: append(debian.Strings(packages), toolPrograms, sum),
		run:    command{arguments: []string{"catatonit", "-P"}},
		fill: func(ctx context.Context, t tree) error {
			t.furnish()
			if err := t.add("usr/local/bin/probe", probe); err != nil {
				return err
			}
			return w.unpacked(ctx, packages, func(root string) error { return t.addTools(ctx, root) })
		},
	}, err
}

// furnish adds what programs expect of any root.
func (t tree) furnish() {
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		t[dir] = symlink("usr/" + dir)
	}
	t["etc/passwd"] = file{mode: 0o644, content: []byte("root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n")}
	t["etc/group"] = file{mode: 0o644, content: []byte("root:x:0:\nnogroup:x:65534:\n")}
	t["usr/bin/sh"] = symlink("bash") // busybox's would run its own ip, whatever stands in the search path
	t["root"] = directory(0o700)
	t["tmp"] = directory(fs.ModeSticky | 0o777)
}

// addTools takes the tools out of unpacked packages, and links busybox's programs where the tools have none of that
// name.
func (t tree) addTools(ctx context.Context, root string) error {
	for name := range strings.FieldsSeq(toolPrograms) {
		if err := t.addProgram(root, name); err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
	}
	// The static program runs on this machine as it is: it is of this architecture and needs no library.
	list, err := program.Output(program.Command(ctx, filepath.Join(root, "usr/bin/busybox"), "--list"))
	if err != nil {
		return err
	}
	for applet := range strings.FieldsSeq(string(list)) {
		if _, taken := t["usr/bin/"+applet]; !taken {
			t["usr/bin/"+applet] = symlink("busybox")
		}
	}
	return nil
}

// addProgram puts a program into usr/bin, wherever the packages have it, and its libraries where its loader looks.
func (t tree) addProgram(root, name string) error {
	for _, dir := range []string{"usr/bin", "usr/sbin"} {
		from := filepath.Join(root, dir, name)
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return err
		}
		if err := t.add("usr/bin/"+name, from); err != nil {
			return err
		}
		return t.addLibraries(root, from)
	}
	return fmt.Errorf("not in the packages %s: %w", toolPackages, fs.ErrNotExist)
}

// addLibraries adds what a program or library is linked with, its loader among it, and what these are linked with.
func (t tree) addLibraries(root, from string) error {
	f, err := elf.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	if loader := debian.Interpreter(f); loader != "" {
		if err := t.add(path.Join("usr", loader), filepath.Join(root, "usr", loader)); err != nil {
			return err
		}
	}
	for _, library := range needed {
		found, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu", library))
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("library %s: found %d times, and one is expected", library, len(found))
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, found[0])
		if err != nil {
			return err
		}
		if _, have := t[name]; have {
			continue
		}
		if err := t.add(name, found[0]); err != nil {
			return err
		}
		if err := t.addLibraries(root, found[0]); err != nil {
			return err
		}
	}
	return nil
}
