package attachbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"

	"railhead/internal/cnicall"
)

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

// calledWhole is the agent's server, called by way of railhead-cni.
type calledWhole struct {
	called
	cluster *cluster
}

// newCalledWhole serves until stop is called. Plugins are in bin, railhead-cni is
// the path of ours.
func newCalledWhole(ctx context.Context, tb testing.TB, bin, program string, c class) (way *calledWhole, stop func()) {
	tb.Helper()
	w, stopWhole := newWhole(ctx, tb, bin, c)
	dir := tb.TempDir()
	socket := filepath.Join(dir, "cni.sock")
	listener, err := cnicall.Listen(socket)
	if err != nil {
		tb.Fatal(err)
	}
	made, err := newCalled(railheadConfig(socket), dir, filepath.Dir(program), bin)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- cnicall.Serve(ctx, listener, w.server.Handle, cnicall.Limits{}) }()
	return &calledWhole{made, w.cluster}, func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("the socket of the server: %v", err)
		}
		stopWhole()
	}
}

func railheadConfig(socket string) []byte {
	return fmt.Appendf(nil, `{"cniVersion":"1.0.0","name":"railhead","plugins":[{"type":"railhead-cni","socket":%q,`+
		`"clusterNetwork":{"file":"10-pods.conflist","name":"pods"}}]}`, socket)
}

func (c *calledWhole) add(ctx context.Context, p *pod) error {
	defer c.cluster.answers(p.id)()
	return c.called.add(ctx, p)
}

// buildPlugin builds railhead-cni as it is released, and returns its path.
func buildPlugin(ctx context.Context, dir string) (string, error) {
	to := filepath.Join(dir, "railhead-cni")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, "railhead/cmd/railhead-cni")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return to, errors.Join(cmd.Run(), ctx.Err())
}
