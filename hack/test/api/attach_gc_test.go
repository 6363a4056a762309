package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"railhead/hack/program"
)

// collects has GC take away two of three pods: one whose namespace is there, one
// whose namespace is gone.
func (n *attachNode) collects(t *testing.T, r *containerRuntime) {
	t.Helper()
	var all []*podSandbox
	for i := range 3 {
		s := n.mustSandbox(t, n.createPod(t, fmt.Sprintf("collect-%d", i)), 0)
		if _, err := r.add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := endNamespace(all[2].path); err != nil {
		t.Fatal(err)
	}
	valid := []types.GCAttachment{{ContainerID: all[0].id, IfName: "eth0"}}
	forgetful := libcni.NewCNIConfigWithCacheDir([]string{n.bin}, t.TempDir(), nil) // else libcni calls DEL for what it remembers
	if err := forgetful.GCNetworkList(t.Context(), r.list, &libcni.GCArgs{ValidAttachments: valid}); err != nil {
		t.Error("GC:", err)
	}
	if err := r.check(t.Context(), all[0]); err != nil {
		t.Error("CHECK of the pod that GC was told of:", err)
	}
	left, _, err := inSandbox(all[1].path)
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Links) != 1 {
		t.Errorf("GC left %q", left.Links)
	}
	if got := n.state(t).Records; !slices.Equal(got, []string{all[0].id + " attached"}) {
		t.Errorf("GC left the records %q", got)
	}
	for _, s := range all {
		if err := r.del(t.Context(), s); err != nil {
			t.Errorf("DEL of %s: %v", s.id, err)
		}
		n.deletePod(t, s.pod)
	}
}

// cnitool makes the calls that it can.
func (n *attachNode) cnitool(t *testing.T) {
	t.Helper()
	path, err := n.set.Path("cnitool")
	if err != nil {
		t.Fatal(err)
	}
	pod := n.createPod(t, "cnitool")
	s := n.mustSandbox(t, pod, 0)
	call := func(args ...string) ([]byte, error) {
		cmd := program.Command(t.Context(), path, args...)
		cmd.Env = append(os.Environ(), "NETCONFPATH="+n.conf, "CNI_PATH="+n.bin, "CNI_IFNAME=eth0",
			fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_UID=%s;K8S_POD_INFRA_CONTAINER_ID=cnitool", pod.Namespace, pod.Name, pod.UID))
		return program.Output(cmd)
	}
	must := func(args ...string) []byte {
		t.Helper()
		out, err := call(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	must("status", "railhead", s.path)
	var result types100.Result
	if err := json.Unmarshal(must("add", "railhead", s.path), &result); err != nil {
		t.Fatal(err)
	}
	n.isAttached(t, s, &result)
	must("check", "railhead", s.path)
	must("del", "railhead", s.path)
	// It gives no list of what is valid, which is not a list with nothing in it.
	if _, err := call("gc", "railhead", s.path); err == nil || !strings.Contains(err.Error(), "cni.dev/valid-attachments: missing") {
		t.Errorf("gc without a list: %v", err)
	}
	left, _, err := inSandbox(s.path)
	if err != nil || len(left.Links) != 1 {
		t.Errorf("cnitool left %q, %v", left.Links, err)
	}
	results, _ := filepath.Glob("/var/lib/cni/results/railhead-cnitool-*")
	for _, f := range results {
		t.Errorf("cnitool left %s", f)
	}
	n.deletePod(t, pod)
}
