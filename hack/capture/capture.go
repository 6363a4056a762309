package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"railhead/internal/inventory"
	"railhead/internal/kernel/archive"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// copier copies a node into an archive.
type copier struct {
	root      string
	fs        sysfs.FS
	addresses *pseudonyms // nil to keep them
	out       archive.Writer
	left      []string // what was left out and why
}

// object is an object of sysfs that was found.
type object struct {
	kind kind
	dir  string // without links: sys/devices/pci0000:16/0000:17:00.0
}

// capture returns the archive of the node below root, and what was left out of
// it. Without pseudonyms, addresses are kept.
func capture(root string, addresses *pseudonyms) (text []byte, left []string, err error) {
	c := &copier{root: root, fs: sysfs.New(root), addresses: addresses}
	facts, err := c.facts()
	if err != nil {
		return nil, nil, err
	}
	for _, problem := range facts.Problems {
		c.leaveOut(problem)
	}
	snapshot := inventory.Join(facts, inventory.Options{})
	netdevs := netdevNames(facts, snapshot)

	c.settings()
	c.sysctls(netdevs)
	c.present()
	c.objects(facts, netdevs)
	c.netlink(&facts.Netlink)

	if err := c.out.Comment(c.comment(snapshot)); err != nil {
		return nil, nil, err
	}
	text = c.out.Bytes()
	if addresses != nil {
		text = addresses.names(text)
	}
	return text, c.left, nil
}

func (c *copier) isLive() bool { return c.root == "/" }

func (c *copier) facts() (*inventory.Facts, error) {
	r, err := c.open()
	if err != nil {
		return nil, err
	}
	facts := r.Read(nil, inventory.Changes{All: true})
	return facts, r.Close()
}

func (c *copier) open() (*inventory.Reader, error) {
	if c.isLive() {
		return inventory.NewReader(node.Running(c.fs))
	}
	return inventory.NewArchiveReader(c.fs)
}

// netdevNames returns the netdevs of which sysfs tells something that the
// inventory needs: those with hardware below them, those that carry RDMA, and
// the bonds that they belong to.
func netdevNames(facts *inventory.Facts, snapshot *inventory.Snapshot) []string {
	var list []string
	for _, n := range facts.Netdevs {
		list = append(list, n.Name, n.Master)
	}
	for _, d := range snapshot.Devices {
		for _, n := range d.Netdevs {
			if n.NetNS == nil {
				list = append(list, n.Name, n.Master)
			}
		}
	}
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(list, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// objects copies what sysfs has of the devices of the inventory: first where
// they are, then what they say, by place, such that what belongs together
// stands together.
func (c *copier) objects(facts *inventory.Facts, names []string) {
	var found []object
	find := func(k kind, name string) {
		if o, ok := c.find(k, name); ok {
			found = append(found, o)
		}
	}
	for _, d := range facts.IB {
		find(rdmaDevices, d.Name)
	}
	for _, d := range facts.Chars {
		find(charDevices[d.Class], d.Name)
	}
	for _, name := range names {
		find(netdevs, name)
	}
	functions := functionsOf(facts)
	for _, address := range slices.SortedFunc(maps.Keys(functions), compareNatural) {
		find(functions[address], address)
	}
	for _, name := range modulesOf(facts) {
		find(modules, name)
	}
	slices.SortStableFunc(found, func(a, b object) int { return cmp.Compare(a.dir, b.dir) })
	for _, o := range found {
		c.object(o)
	}
}

// functionsOf returns the PCI functions that matter, by address: those of the
// inventory and the bridges above them.
func functionsOf(facts *inventory.Facts) map[string]kind {
	found := map[string]kind{}
	for _, d := range facts.PCI {
		for hop := range strings.SplitSeq(path.Dir(d.Path), "/") {
			if strings.Count(hop, ":") == 2 { // 0000:16:01.0, below pci0000:16
				found[hop] = pciBridges
			}
		}
	}
	for _, d := range facts.PCI {
		found[d.Address] = pciFunctions
	}
	return found
}

// compareNatural orders names that differ in numbers, if they differ in length.
func compareNatural(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// modulesOf returns the modules that matter: those of RDMA, and those that go
// with the drivers of functions.
func modulesOf(facts *inventory.Facts) []string {
	list := slices.Clone(rdmaModules)
	for _, d := range facts.PCI {
		driver, _ := inventory.DriverOf(d.Driver)
		for _, name := range []string{moduleName(d.Driver), driver.RDMA} {
			if name != "" && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

func moduleName(s string) string { return strings.ReplaceAll(s, "-", "_") }

// find finds an object in the directory that lists its kind, and copies the
// link there, if it is one.
func (c *copier) find(k kind, name string) (object, bool) {
	listed := path.Join("sys", k.class, name)
	target, err := os.Readlink(c.fs.Path(listed))
	switch {
	case errors.Is(err, unix.EINVAL): // a directory
		return object{kind: k, dir: listed}, true
	case err != nil:
		c.unreadable(listed, err)
		return object{}, false
	}
	c.keep(c.out.Link(listed, target))
	return object{kind: k, dir: path.Join(path.Dir(listed), target)}, true
}

// object copies what an object says. It is copied even if it says nothing.
func (c *copier) object(o object) {
	c.keep(c.out.Dir(o.dir))
	for _, pattern := range o.kind.links {
		for _, name := range c.match(o.dir, pattern) {
			c.link(path.Join(o.dir, name))
		}
	}
	for _, pattern := range o.kind.files {
		c.files(o, pattern)
	}
	for _, part := range o.kind.parts {
		for _, name := range c.match(o.dir, part.class) {
			c.object(object{kind: part, dir: path.Join(o.dir, name)})
		}
	}
}

// files copies those files of an object that match a pattern.
func (c *copier) files(o object, pattern string) {
	names := c.match(o.dir, pattern)
	last := map[string]string{} // by directory
	for _, name := range names {
		last[path.Dir(name)] = name
	}
	for _, name := range names {
		text, ok := c.attribute(path.Join(o.dir, name), o.kind.hide[pattern])
		if !ok || pattern == o.kind.sparse && isZero(text) && last[path.Dir(name)] != name {
			continue
		}
		c.keep(c.out.File(path.Join(o.dir, name), []byte(text+"\n")))
	}
}

// isZero tells whether a table's entry is not in use.
func isZero(text string) bool { return strings.Trim(text, "0:") == "" }

// match returns the names that match a pattern, in natural order. A pattern
// without * is taken for a name.
func (c *copier) match(dir, pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	names, err := fs.Glob(os.DirFS(c.fs.Path(dir)), pattern)
	if err != nil {
		c.unreadable(path.Join(dir, pattern), err)
	}
	slices.SortFunc(names, compareNatural)
	return names
}

func (c *copier) link(name string) {
	target, err := os.Readlink(c.fs.Path(name))
	if err != nil {
		c.unreadable(name, err)
		return
	}
	c.keep(c.out.Link(name, target))
}

// attribute returns an attribute without its newline. If hide is not nil it
// holds an address, and gets a pseudonym instead.
func (c *copier) attribute(name string, hide replacement) (string, bool) {
	const limit = 4096
	text, err := c.read(name, limit)
	if err != nil {
		return "", false
	}
	text = strings.TrimSuffix(text, "\n")
	if hide == nil || c.addresses == nil || text == "" {
		return text, true
	}
	hidden, err := hide(c.addresses, text)
	if err != nil {
		c.leaveOut(fmt.Errorf("/%s: %w", name, err))
		return "", false
	}
	return hidden, true
}

// read reads a file. An error has been noted, if it is one.
func (c *copier) read(name string, limit int64) (string, error) {
	text, err := c.fs.ConfigFile("/"+name, limit)
	if err != nil {
		c.unreadable(name, err)
	}
	return string(text), err
}

// copyFile copies a file of one value as it is.
func (c *copier) copyFile(name string) {
	if text, ok := c.attribute(name, nil); ok {
		c.keep(c.out.File(name, []byte(text+"\n")))
	}
}

// present notes which files are there. They get an empty line, which fits into
// a table.
func (c *copier) present() {
	if _, err := os.Stat(c.fs.Path("dev")); err == nil {
		c.keep(c.out.Dir("dev"))
	}
	for _, pattern := range present {
		for _, name := range c.match(".", pattern) {
			info, err := os.Stat(c.fs.Path(name))
			switch {
			case err != nil:
				c.unreadable(name, err)
			case !info.IsDir():
				c.keep(c.out.File(name, []byte("\n")))
			}
		}
	}
}

func (c *copier) sysctls(netdevs []string) {
	for _, name := range sysctls {
		c.copyFile("proc/sys/" + name)
	}
	for _, netdev := range append([]string{"all"}, netdevs...) {
		for _, name := range ipv4Sysctls {
			c.copyFile("proc/sys/net/ipv4/conf/" + netdev + "/" + name)
		}
	}
}

// keep notes what the archive cannot hold.
func (c *copier) keep(err error) {
	if err != nil {
		c.leaveOut(err)
	}
}

// unreadable notes a file that cannot be read, unless it is not there or has
// no value now.
func (c *copier) unreadable(name string, err error) {
	for _, absent := range []error{fs.ErrNotExist, unix.EINVAL, unix.EOPNOTSUPP, unix.ENODEV, unix.ENXIO, unix.ESRCH, unix.ENOTDIR} {
		if errors.Is(err, absent) {
			return
		}
	}
	why := strings.TrimPrefix(err.Error(), c.fs.Path(name)+": ")
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		why = cause.Err.Error()
	}
	c.leaveOut(fmt.Errorf("/%s: %s", name, why))
}

// leaveOut notes what is not in the archive, by names as the node has them.
func (c *copier) leaveOut(err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !c.isLive() {
			line = strings.ReplaceAll(line, strings.TrimSuffix(c.root, "/")+"/", "/")
		}
		if !slices.Contains(c.left, line) {
			c.left = append(c.left, line)
		}
	}
}

// comment says what the archive is of, how it was made and what it lacks.
func (c *copier) comment(s *inventory.Snapshot) string {
	var b strings.Builder
	rdma := 0
	for _, d := range s.Devices {
		if d.RDMA != nil {
			rdma++
		}
	}
	fmt.Fprintf(&b, "Node with RDMA devices: %d, GPUs: %d, kernel %s.\n\n", rdma, len(s.GPUs), cmp.Or(s.System.Kernel, "unknown"))
	b.WriteString("Made by hack/capture. GID tables hold the entries in use and the last one.\n")
	if c.addresses == nil {
		b.WriteString("Addresses are those of the node.\n")
	} else {
		b.WriteString("MACs, GUIDs and IP addresses are replaced: what was equal or in one subnet\nstill is.\n")
	}
	if len(c.left) > 0 {
		b.WriteString("\nLeft out, or of doubtful content:\n")
	}
	for _, line := range c.left {
		b.WriteString("  " + printable(line) + "\n")
	}
	return b.String()
}

// printable makes a line such that a comment can hold it.
func printable(line string) string {
	if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToASCII(line)
	}
	return line
}
