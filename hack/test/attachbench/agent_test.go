package attachbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"

	"railhead/hack/program"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/ipam/journal"
)

// podsNetwork is the name of the cluster's own network.
const podsNetwork = "pods"

// called is a pod's network as a container runtime has it: libcni executes one
// plugin, which sees to eth0 and to all rails.
type called struct {
	cni  *libcni.CNIConfig
	list *libcni.NetworkConfigList
}

// newCalled calls the plugin of a configuration, from one of the directories, and
// keeps what libcni keeps in dir.
func newCalled(config []byte, dir string, bin ...string) (called, error) {
	list, err := libcni.NetworkConfFromBytes(config)
	return called{cni: libcni.NewCNIConfigWithCacheDir(bin, filepath.Join(dir, "runtime"), quiet()), list: list}, err
}

// ofPod is what a runtime says of a pod.
func ofPod(p *pod) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: p.id, NetNS: p.path, IfName: "eth0", Args: [][2]string{
		{"IgnoreUnknown", "1"},
		{"K8S_POD_NAMESPACE", namespace},
		{"K8S_POD_NAME", p.id},
		{"K8S_POD_INFRA_CONTAINER_ID", p.id},
		{"K8S_POD_UID", "uid-" + p.id},
	}}
}

func (c called) add(ctx context.Context, p *pod) error {
	if _, err := c.cni.AddNetworkList(ctx, c.list, ofPod(p)); err != nil {
		return fmt.Errorf("ADD of %s: %w", p.id, err)
	}
	return nil
}

func (c called) del(ctx context.Context, p *pod) error {
	if err := c.cni.DelNetworkList(ctx, c.list, ofPod(p)); err != nil {
		return fmt.Errorf("DEL of %s: %w", p.id, err)
	}
	return nil
}

// agent is the agent's CNI server, called by way of railhead-cni: the cluster's own
// network by an executed plugin, addresses of the node's lease, rails, records.
type agent struct {
	called
	cluster *cluster
	stop    func() // waits for what goes on after answers
}

// newAgent serves until it is stopped, at the latest with the benchmark. Plugins are
// in bin, railhead-cni is the path of ours.
func newAgent(b *testing.B, bin, program string) *agent {
	b.Helper()
	dir := b.TempDir()
	a := &agent{cluster: newCluster()}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	server := newServer(ctx, b, bin, dir, a.cluster)
	socket := filepath.Join(dir, "cni.sock")
	listener, err := cnicall.Listen(socket)
	if err != nil {
		b.Fatal(err)
	}
	if a.called, err = newCalled(railheadConfig(socket), dir, filepath.Dir(program), bin); err != nil {
		b.Fatal(err)
	}
	answers, runs := make(chan error, 1), make(chan error, 1)
	go func() { answers <- cnicall.Serve(ctx, listener, server.Handle, cnicall.Limits{}) }()
	go func() { runs <- server.Run(ctx) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-answers; err != nil {
			b.Errorf("the socket of the server: %v", err)
		}
		if err := <-runs; !errors.Is(err, context.Canceled) {
			b.Errorf("the server ended with %v", err)
		}
	})
	b.Cleanup(a.stop)
	return a
}

func newServer(ctx context.Context, b *testing.B, bin, dir string, c *cluster) *cniserver.Server {
	b.Helper()
	disk, err := journal.OS(filepath.Join(dir, "attachments"))
	if err != nil {
		b.Fatal(err)
	}
	records, err := record.Open(disk, record.File)
	if err != nil {
		b.Fatal(err)
	}
	attacher, err := attach.New(attach.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(records.Close(), disk.Close(), attacher.Close()); err != nil {
			b.Error(err)
		}
	})
	runs, err := delegate.New(delegate.Config{BinDirs: []string{bin}})
	if err != nil {
		b.Fatal(err)
	}
	server, err := cniserver.New(cniserver.Config{
		NodeName: "node1", Addresses: newLeased(ctx, b, filepath.Join(dir, "addresses")), Cluster: c, Attacher: attacher,
		Records: records, Delegate: runs, BootID: "boot",
		ClusterNetwork: func(string, string) (*libcni.NetworkConfigList, error) { return networkList(eth0(dir)) },
	})
	if err != nil {
		b.Fatal(err)
	}
	return server
}

func railheadConfig(socket string) []byte {
	return fmt.Appendf(nil, `{"cniVersion":"1.0.0","name":"railhead","plugins":[{"type":"railhead-cni","socket":%q,`+
		`"clusterNetwork":{"file":"10-pods.conflist","name":%q}}]}`, socket, podsNetwork)
}

func (a *agent) add(ctx context.Context, p *pod) error {
	defer a.cluster.answers(p.id)()
	return a.called.add(ctx, p)
}

// buildPlugin builds railhead-cni as it is released, and returns its path.
func buildPlugin(b *testing.B) string {
	b.Helper()
	to := filepath.Join(b.TempDir(), "railhead-cni")
	cmd := program.Command(b.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, "railhead/cmd/railhead-cni")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := program.Run(cmd); err != nil {
		b.Fatal(err)
	}
	return to
}

// quiet runs plugins without what they say beside their answers: sbr tells of
// all that it does.
func quiet() invoke.Exec { return &invoke.DefaultExec{RawExec: &invoke.RawExec{Stderr: io.Discard}} }
