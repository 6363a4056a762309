package attachbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
)

// plugins is macvlan with host-local, and sbr where there are policy routes, run
// by libcni for one rail after the other, as runtimes of networks do. It does
// without such a runtime, which would come on top.
type plugins struct {
	cni   *libcni.CNIConfig
	lists []*libcni.NetworkConfigList
}

// newPlugins uses plugins of a directory, and keeps what they keep in another.
func newPlugins(bin, dir string, c class) (*plugins, error) {
	p := &plugins{cni: libcni.NewCNIConfigWithCacheDir([]string{bin}, filepath.Join(dir, "cache"), quiet())}
	for i := range rails {
		text, err := json.Marshal(chain(filepath.Join(dir, "host-local"), i, c))
		if err != nil {
			return nil, err
		}
		list, err := libcni.NetworkConfFromBytes(text)
		if err != nil {
			return nil, err
		}
		p.lists = append(p.lists, list)
	}
	return p, nil
}

type object = map[string]any

// chain is a rail's configuration.
func chain(dir string, rail int, c class) object {
	ipam := object{
		"type": "host-local", "dataDir": dir,
		"ranges": [][]object{{{"subnet": subnet(rail).String(), "gateway": gateway(rail).String()}}},
	}
	if c.routes {
		ipam["routes"] = []object{{"dst": "0.0.0.0/0"}}
	}
	list := []object{{"type": "macvlan", "master": parent(rail), "mode": "bridge", "ipam": ipam}}
	if c.routes {
		list = append(list, object{"type": "sbr"})
	}
	return object{"cniVersion": "1.0.0", "name": parent(rail), "plugins": list}
}

func (p *plugins) add(ctx context.Context, to *pod) error {
	for i, list := range p.lists {
		if _, err := p.cni.AddNetworkList(ctx, list, runtime(to, i)); err != nil {
			return fmt.Errorf("rail %d: %w", i, err)
		}
	}
	return nil
}

func (p *plugins) del(ctx context.Context, from *pod) error {
	var errs []error
	for i, list := range p.lists {
		errs = append(errs, p.cni.DelNetworkList(ctx, list, runtime(from, i)))
	}
	return errors.Join(errs...)
}

func runtime(p *pod, rail int) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: p.id, NetNS: p.path, IfName: name(rail)}
}

// quiet runs plugins without what they say beside their answers: sbr tells of
// all that it does.
func quiet() invoke.Exec { return &invoke.DefaultExec{RawExec: &invoke.RawExec{Stderr: io.Discard}} }
