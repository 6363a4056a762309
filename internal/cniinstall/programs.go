package cniinstall

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// mainPackage is what the go command writes into our program, stripped or not.
// By it we know our own, of any release.
const mainPackage = "railhead/cmd/railhead-cni"

const programMode = 0o755

// installPrograms puts the program into the directory, under all its names.
func (i *Installer) installPrograms(s *State) error {
	data, err := i.disk.read(i.config.Program)
	if err != nil {
		return failed("read the program", i.config.Program, err)
	}
	ours, err := i.disk.isOurs(i.config.Program)
	if err != nil {
		return failed("read the program", i.config.Program, err)
	}
	if !ours {
		return fmt.Errorf("program %s: not %s; name the file that this release brought", i.config.Program, mainPackage)
	}
	if err := i.installProgram(s, data); err != nil {
		return err // the other names would be of another release
	}
	var errs []error
	for _, name := range Names() {
		if err := i.installName(s, filepath.Join(i.config.BinDir, name), data); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// installProgram puts the program under its own name, whatever is there.
func (i *Installer) installProgram(s *State, data []byte) error {
	right, err := i.disk.holds(i.program(), data, programMode)
	if right && err == nil {
		return nil
	}
	if info, err := i.disk.lstat(i.program()); err == nil && info.IsDir() {
		return fmt.Errorf("%s: a directory; remove it, the program belongs there", i.program())
	}
	if err := i.disk.write(i.program(), data, programMode); err != nil {
		return failed("install", i.program(), err)
	}
	s.Changed = append(s.Changed, i.program())
	return nil
}

// installName puts the program under another name, unless something of another
// project has it.
func (i *Installer) installName(s *State, path string, data []byte) error {
	info, err := i.disk.lstat(path)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("install", path, err)
	}
	if program, err := i.disk.lstat(i.program()); err == nil && there && os.SameFile(program, info) {
		return nil // right, as the program is by now
	}
	if right, err := i.disk.holds(path, data, programMode); right && err == nil {
		return nil
	}
	if there {
		ours, err := i.mayReplace(path)
		if err != nil {
			return failed("install", path, err)
		}
		if !ours {
			s.Foreign = append(s.Foreign, path)
			return nil
		}
	}
	err = i.disk.link(i.program(), path, data, programMode, there)
	if errors.Is(err, fs.ErrExist) { // another project's installer was faster
		s.Foreign = append(s.Foreign, path)
		return nil
	}
	if err != nil {
		return failed("install", path, err)
	}
	s.Changed = append(s.Changed, path)
	return nil
}

// mayReplace says whether a file is ours, or nothing: an empty one runs as no
// program, and one that is gone is nobody's.
func (i *Installer) mayReplace(path string) (bool, error) {
	info, err := i.disk.lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	if info.Size() == 0 {
		return true, nil
	}
	return i.disk.isOurs(path)
}

// isOurs looks into a file. The error is of one that cannot be read, which may be ours.
func (d disk) isOurs(path string) (ours bool, err error) {
	err = d.step("identify", path, func() error {
		info, err := buildinfo.ReadFile(path)
		ours = err == nil && info.Path == mainPackage
		if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
			return err
		}
		return nil
	})
	return ours, err
}

// removePrograms removes what is ours; our own program only where no runtime is
// told to call it: the network could not be removed, or another installer has come.
func (i *Installer) removePrograms(s *State) error {
	names := Names()
	var errs []error
	switch _, err := i.disk.lstat(i.file()); {
	case errors.Is(err, fs.ErrNotExist):
		names = append(names, Program)
	case err != nil:
		errs = append(errs, failed("remove", i.program(), fmt.Errorf("%s may still name it: %w", i.file(), err)))
	}
	for _, name := range names {
		path := filepath.Join(i.config.BinDir, name)
		if err := i.disk.remove(temporaryOf(path)); err != nil {
			errs = append(errs, failed("remove", temporaryOf(path), err))
		}
		errs = append(errs, i.removeName(s, path))
	}
	return errors.Join(append(errs, i.disk.syncDir(i.config.BinDir))...)
}

func (i *Installer) removeName(s *State, path string) error {
	if _, err := i.disk.lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ours := path == i.program()
	if !ours {
		var err error
		if ours, err = i.mayReplace(path); err != nil {
			return failed("remove", path, err)
		}
	}
	if !ours {
		s.Foreign = append(s.Foreign, path)
		return nil
	}
	if err := i.disk.remove(path); err != nil {
		return failed("remove", path, err)
	}
	s.Changed = append(s.Changed, path)
	return nil
}
