package attachbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/containernetworking/cni/libcni"
)

// plugins is the cluster's own network, and then macvlan with host-local and sbr,
// run by libcni for one rail after the other, as runtimes of networks do. It does
// without such a runtime, which would come on top.
type plugins struct {
	cni   *libcni.CNIConfig
	lists []*libcni.NetworkConfigList // eth0 and the rails
}

// newPlugins uses plugins of a directory.
func newPlugins(b *testing.B, bin string) *plugins {
	b.Helper()
	dir := b.TempDir()
	p := &plugins{cni: libcni.NewCNIConfigWithCacheDir([]string{bin}, filepath.Join(dir, "cache"), quiet())}
	for i := -1; i < rails; i++ {
		config := eth0(dir)
		if i >= 0 {
			config = chain(dir, i)
		}
		list, err := networkList(config)
		if err != nil {
			b.Fatal(err)
		}
		p.lists = append(p.lists, list)
	}
	return p
}

type object = map[string]any

// eth0 is the cluster's own network, which keeps its addresses below a directory.
func eth0(dir string) object {
	return object{"cniVersion": "1.0.0", "name": podsNetwork, "plugins": []object{{
		"type": "ptp",
		"ipam": object{
			"type": "host-local", "dataDir": filepath.Join(dir, "pods"), "routes": []object{{"dst": "0.0.0.0/0"}},
			"ranges": [][]object{{{"subnet": "10.244.0.0/16"}}},
		},
	}}}
}

// chain is a rail's configuration.
func chain(dir string, rail int) object {
	return object{"cniVersion": "1.0.0", "name": parent(rail), "plugins": []object{
		{
			"type": "macvlan", "master": parent(rail), "mode": "bridge",
			"ipam": object{
				"type": "host-local", "dataDir": filepath.Join(dir, "host-local"), "routes": []object{{"dst": "0.0.0.0/0"}},
				"ranges": [][]object{{{"subnet": subnet(rail).String(), "gateway": gateway(rail).String()}}},
			},
		},
		{"type": "sbr"},
	}}
}

func networkList(config object) (*libcni.NetworkConfigList, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return libcni.NetworkConfFromBytes(text)
}

func (p *plugins) add(ctx context.Context, to *pod) error {
	for i, list := range p.lists {
		if _, err := p.cni.AddNetworkList(ctx, list, sandbox(to, i)); err != nil {
			return fmt.Errorf("%s: %w", list.Name, err)
		}
	}
	return nil
}

func (p *plugins) del(ctx context.Context, from *pod) error {
	var errs []error
	for i, list := range slices.Backward(p.lists) {
		errs = append(errs, p.cni.DelNetworkList(ctx, list, sandbox(from, i)))
	}
	return errors.Join(errs...)
}

// sandbox is what plugins are told of a pod, for eth0 and for the rails behind it.
func sandbox(p *pod, i int) *libcni.RuntimeConf {
	c := &libcni.RuntimeConf{ContainerID: p.id, NetNS: p.path, IfName: "eth0"}
	if i > 0 {
		c.IfName = name(i - 1)
	}
	return c
}
