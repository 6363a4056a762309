package sysfs

import (
	"errors"
	"os"
)

// Module is a kernel module, /sys/module/NAME.
type Module struct {
	Name    string
	Builtin bool              // compiled in: it has no refcnt or initstate
	Params  map[string]string // parameters/NAME, those that can be read
}

// Module returns a kernel module and whether it is loaded or compiled in. As
// modprobe does, it takes - and _ for the same in the name. A module that is
// compiled in and has no parameters may not be in sysfs at all: it counts as
// not loaded.
func (fs FS) Module(name string) (m Module, loaded bool, err error) {
	m = Module{Name: underscores(name)}
	d, err := fs.open("module", m.Name)
	if errors.Is(err, os.ErrNotExist) {
		return Module{}, false, nil
	}
	if err != nil {
		return m, false, err
	}
	defer d.close()
	m.Builtin = d.text("initstate") == "" && d.text("refcnt") == ""
	m.Params = readModuleParams(d)
	err = d.done()
	if errors.Is(err, os.ErrNotExist) {
		return Module{}, false, nil
	}
	return m, true, err
}

// readModuleParams leaves out what nobody or only root may read, which is
// how modules mark parameters that are only to be written.
func readModuleParams(d *dir) map[string]string {
	params := d.sub("parameters")
	if params == nil {
		return nil
	}
	defer params.close()
	found := make(map[string]string)
	for _, name := range params.names() {
		b, err := params.read(name)
		switch {
		case err == nil:
			found[name] = string(b)
		case !errors.Is(err, os.ErrPermission):
			params.fail(name, err)
		}
	}
	return found
}
