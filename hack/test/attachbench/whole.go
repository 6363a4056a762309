package attachbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/ipam/journal"
)

// whole is the agent's CNI server, from the call of railhead-cni to its answer:
// the cluster's own network by an executed plugin, addresses of the node's lease,
// rails, records.
type whole struct {
	server  *cniserver.Server
	cluster *cluster
}

// newWhole serves until the test ends or stop is called, which waits for what
// goes on after answers.
func newWhole(ctx context.Context, tb testing.TB, bin string, c class) (w *whole, stop func()) {
	tb.Helper()
	w = &whole{cluster: newCluster(c)}
	dir := tb.TempDir()
	disk, err := journal.OS(filepath.Join(dir, "attachments"))
	if err != nil {
		tb.Fatal(err)
	}
	records, err := record.Open(disk, record.File)
	if err != nil {
		tb.Fatal(err)
	}
	attacher, err := attach.New(attach.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	runs, err := delegate.New(delegate.Config{BinDirs: []string{bin}})
	if err != nil {
		tb.Fatal(err)
	}
	addresses := newLeased(ctx, tb, filepath.Join(dir, "addresses"))
	w.server, err = cniserver.New(cniserver.Config{
		NodeName: "node1", Addresses: addresses, Cluster: w.cluster, Attacher: attacher, Records: records,
		Delegate: runs, BootID: "boot",
		ClusterNetwork: func(string, string) (*libcni.NetworkConfigList, error) { return eth0Network(dir) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx) }()
	return w, func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			tb.Errorf("the server ended with %v", err)
		}
		if err := errors.Join(records.Close(), disk.Close(), attacher.Close()); err != nil {
			tb.Error(err)
		}
	}
}

// eth0Network is the cluster's own network, which keeps its addresses in a directory.
func eth0Network(dir string) (*libcni.NetworkConfigList, error) {
	text, err := json.Marshal(object{"cniVersion": "1.0.0", "name": "pods", "plugins": []object{{
		"type": "ptp",
		"ipam": object{
			"type": "host-local", "dataDir": filepath.Join(dir, "pods"), "routes": []object{{"dst": "0.0.0.0/0"}},
			"ranges": [][]object{{{"subnet": "10.244.0.0/16"}}},
		},
	}}})
	if err != nil {
		return nil, err
	}
	return libcni.NetworkConfFromBytes(text)
}

func (w *whole) call(ctx context.Context, command string, p *pod) error {
	answer := w.server.Handle(ctx, cnicall.Request{
		Command: command, ContainerID: p.id, NetNS: p.path, IfName: "eth0", Plugin: "railhead-cni",
		Args: fmt.Sprintf("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_UID=uid-%s;K8S_POD_INFRA_CONTAINER_ID=%[2]s",
			namespace, p.id, p.id),
		Config: json.RawMessage(`{"cniVersion":"1.0.0","name":"railhead","type":"railhead-cni","clusterNetwork":{"file":"10-pods.conflist","name":"pods"}}`),
	})
	if answer.Error != nil {
		return fmt.Errorf("%s of %s: %w", command, p.id, answer.Error)
	}
	return nil
}

func (w *whole) add(ctx context.Context, p *pod) error {
	defer w.cluster.answers(p.id)()
	return w.call(ctx, cnicall.Add, p)
}

func (w *whole) del(ctx context.Context, p *pod) error { return w.call(ctx, cnicall.Del, p) }

// wholePlugins is the cluster's own network and then the rails' plugins, by libcni.
type wholePlugins struct {
	*plugins
	eth0 *libcni.NetworkConfigList
}

func newWholePlugins(bin, dir string, c class) (*wholePlugins, error) {
	p, err := newPlugins(bin, dir, c)
	if err != nil {
		return nil, err
	}
	eth0, err := eth0Network(dir)
	return &wholePlugins{p, eth0}, err
}

func eth0(p *pod) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: p.id, NetNS: p.path, IfName: "eth0"}
}

func (w *wholePlugins) add(ctx context.Context, p *pod) error {
	if _, err := w.cni.AddNetworkList(ctx, w.eth0, eth0(p)); err != nil {
		return fmt.Errorf("eth0: %w", err)
	}
	return w.plugins.add(ctx, p)
}

func (w *wholePlugins) del(ctx context.Context, p *pod) error {
	return errors.Join(w.plugins.del(ctx, p), w.cni.DelNetworkList(ctx, w.eth0, eth0(p)))
}
