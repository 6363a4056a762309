// Package delegate runs CNI plugins of others: those in a chain that the agent
// does not do itself, and those of the cluster's own network.
//
// A plugin runs in the node's root and network namespace, with the environment
// that the CNI specification gives it and none of the agent's, for as long as
// its context lets it. What it answered is not kept here: the caller keeps it
// with its own records, and gives it back for CHECK and DEL as prevResult.
package delegate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// Config is where the plugins of a node are.
type Config struct {
	HostRoot string   // the node's root as this process sees it, absolute; "": this process's own
	ConfDir  string   // with the node's CNI configurations, below HostRoot; "": /etc/cni/net.d
	BinDirs  []string // with plugins, below HostRoot, for calls without a Path; none: /opt/cni/bin
}

// Delegate runs plugins. It is safe for concurrent use; it does not keep calls of
// one pod apart, which the specification asks of the caller. It takes the
// privileges that the plugins take, and CAP_SYS_CHROOT where there is a HostRoot.
type Delegate struct {
	root    string
	confDir string
	binDirs []string
}

// New returns a Delegate. It does not look whether its directories are there:
// they may come later.
func New(c Config) (*Delegate, error) {
	d := &Delegate{root: c.HostRoot, confDir: c.ConfDir, binDirs: c.BinDirs}
	if d.confDir == "" {
		d.confDir = "/etc/cni/net.d"
	}
	if len(d.binDirs) == 0 {
		d.binDirs = []string{"/opt/cni/bin"}
	}
	var errs []error
	for _, dir := range append([]string{d.confDir, d.root}, d.binDirs...) {
		if dir != "" && !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("directory of CNI plugins %q: want an absolute path", dir))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if filepath.Clean(d.root) == "/" {
		d.root = "" // without a privilege
	}
	return d, nil
}

// Call is one call of one plugin.
type Call struct {
	ContainerID string
	NetNS       string // path of the pod's network namespace as the node sees it; "" if it is gone
	IfName      string
	Args        string // CNI_ARGS, as the runtime gave it
	Path        string // CNI_PATH, as the runtime gave it; "": the Delegate's BinDirs
	Programs    string // PATH, as the runtime has it; "": where systems have their programs
	Type        string // of the plugin: the name of its file
	Config      []byte // complete, as JSON: what the plugin reads
}

// Add has a plugin attach its network. The result is in the newest version,
// whichever the plugin speaks. After an error the caller is to call Del, since
// plugins do not always take back what they did.
func (d *Delegate) Add(ctx context.Context, c Call) (*types100.Result, error) {
	path, err := d.find(c)
	if err != nil {
		return nil, c.failed("ADD", path, err)
	}
	p := d.process()
	result, err := invoke.ExecPluginWithResult(ctx, path, c.Config, d.environment("ADD", c), p)
	if err != nil {
		return nil, c.failed("ADD", path, p.unread(err))
	}
	newest, err := types100.NewResultFromResult(result)
	if err != nil {
		return nil, c.failed("ADD", path, p.unread(err))
	}
	return newest, nil
}

// Del has a plugin take away what it attached. Plugins take a second Del for a
// success. A plugin that is no longer there is an [ErrNotThere].
func (d *Delegate) Del(ctx context.Context, c Call) error { return d.run(ctx, "DEL", c) }

// Check has a plugin compare what is there with the prevResult in its
// configuration. It is nil for configurations before 0.4.0, which have no CHECK.
func (d *Delegate) Check(ctx context.Context, c Call) error { return d.since(ctx, "0.4.0", "CHECK", c) }

// Status asks a plugin whether it could attach a pod now. Only Type, Path and
// Config of the call are given to it. It is nil for configurations before 1.1.0.
func (d *Delegate) Status(ctx context.Context, c Call) error {
	return d.since(ctx, "1.1.0", "STATUS", Call{Type: c.Type, Path: c.Path, Config: c.Config})
}

// GC tells a plugin which attachments of its network are still there, so that it
// takes away all else that it has. Only Type, Path and Config of the call are
// given to it. It is nil for configurations before 1.1.0.
func (d *Delegate) GC(ctx context.Context, c Call, valid []types.GCAttachment) error {
	if valid == nil {
		valid = []types.GCAttachment{} // none, and not: not told
	}
	config, err := with(c.Config, map[string]any{
		"cni.dev/valid-attachments": valid,
		"cni.dev/attachments":       valid, // as it stood in the specification once
	})
	if err != nil {
		return c.failed("GC", "", err)
	}
	return d.since(ctx, "1.1.0", "GC", Call{Type: c.Type, Path: c.Path, Config: config})
}

// since makes a call if the configuration is of a version that has it.
func (d *Delegate) since(ctx context.Context, first, command string, c Call) error {
	_, has, err := speaks(c.Config, first)
	switch {
	case err != nil:
		return c.failed(command, "", err)
	case !has:
		return nil
	}
	return d.run(ctx, command, c)
}

// run makes a call that has no result.
func (d *Delegate) run(ctx context.Context, command string, c Call) error {
	path, err := d.find(c)
	if err == nil {
		err = invoke.ExecPluginWithoutResult(ctx, path, c.Config, d.environment(command, c), d.process())
	}
	if err != nil {
		return c.failed(command, path, err)
	}
	return nil
}

// failed says which plugin of which network an error is of.
func (c Call) failed(command, path string, err error) error {
	var config struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(c.Config, &config) // else without the name
	name := cmp.Or(config.Name, "without a name")
	where := ""
	if path != "" {
		where = " (" + path + ")"
	}
	return fmt.Errorf("network %s: plugin %s%s: %s: %w", name, c.Type, where, command, err)
}
