package api

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cniv1 "railhead/api/cni/v1"
)

// containerRuntime calls CNI plugins as one does, with libcni.
type containerRuntime struct {
	*libcni.CNIConfig
	list *libcni.NetworkConfigList
}

func (n *attachNode) runtime(t *testing.T, list *libcni.NetworkConfigList) *containerRuntime {
	t.Helper()
	return &containerRuntime{libcni.NewCNIConfigWithCacheDir([]string{n.bin}, filepath.Join(n.run, "results"), nil), list}
}

// podSandbox is one sandbox of a pod.
type podSandbox struct {
	id, path string
	pod      *corev1.Pod
}

// railsPod is a pod of the node that asks for all rails.
func (n *attachNode) railsPod(name string) *corev1.Pod {
	var networks []string
	for rail := range attachRails {
		networks = append(networks, fmt.Sprintf("%s/gpu%d", n.name, 1+rail))
	}
	p := podOn(n.name, name)
	p.Namespace = n.name
	p.Annotations = map[string]string{cniv1.AnnotationNetworks: strings.Join(networks, ",")}
	return p
}

// createPod makes a pod with all rails.
func (n *attachNode) createPod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	p := n.railsPod(name)
	if err := n.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// sandbox makes the number-th sandbox of a pod.
func (n *attachNode) sandbox(pod *corev1.Pod, number int) (*podSandbox, error) {
	id := fmt.Sprintf("%s-%d", pod.Name, number)
	s := &podSandbox{id: id, path: filepath.Join(n.namespaces, id), pod: pod}
	return s, makeNamespace(s.path)
}

// mustSandbox is sandbox where nothing else can go wrong. It ends with the test.
func (n *attachNode) mustSandbox(t *testing.T, pod *corev1.Pod, number int) *podSandbox {
	t.Helper()
	s, err := n.sandbox(pod, number)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *podSandbox) conf() *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: s.id, NetNS: s.path, IfName: "eth0", Args: [][2]string{
		{"IgnoreUnknown", "1"},
		{"K8S_POD_NAMESPACE", s.pod.Namespace},
		{"K8S_POD_NAME", s.pod.Name},
		{"K8S_POD_INFRA_CONTAINER_ID", s.id},
		{"K8S_POD_UID", string(s.pod.UID)},
	}}
}

// add calls ADD and returns what the pod's eth0 was given.
func (r *containerRuntime) add(ctx context.Context, s *podSandbox) (*types100.Result, error) {
	answer, err := r.AddNetworkList(ctx, r.list, s.conf())
	if err != nil {
		return nil, err
	}
	if answer.Version() != r.list.CNIVersion {
		return nil, fmt.Errorf("a result of CNI version %s, want %s", answer.Version(), r.list.CNIVersion)
	}
	result, err := types100.NewResultFromResult(answer)
	if err != nil {
		return nil, err
	}
	if len(result.IPs) != 1 || len(result.Interfaces) == 0 {
		return nil, fmt.Errorf("result %+v, want interfaces and one address", result)
	}
	return result, nil
}

func (r *containerRuntime) del(ctx context.Context, s *podSandbox) error {
	return r.DelNetworkList(ctx, r.list, s.conf())
}

func (r *containerRuntime) check(ctx context.Context, s *podSandbox) error {
	return r.CheckNetworkList(ctx, r.list, s.conf())
}

// errUnclear is of an error that does not say what to do.
var errUnclear = errors.New("not a reason that tells what to do")

// clear wants the error of a call to say what was the matter, in words of a test in
// which agents are killed and nothing else is wrong: nobody was there, or nobody
// answered.
func clear(err error) error {
	var e *types.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%w: %w", errUnclear, err)
	}
	if e.Code == types.ErrTryAgainLater && strings.Contains(e.Msg, "agent") {
		return nil
	}
	return fmt.Errorf("%w: code %d: %w", errUnclear, e.Code, err)
}

// mustRails are the addresses of a pod's rails, by interface; each has one.
func (n *attachNode) mustRails(found map[string][]netip.Addr) (map[string]netip.Addr, error) {
	rails := map[string]netip.Addr{}
	for rail := range attachRails {
		name := fmt.Sprintf("net%d", 1+rail)
		subnet := netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.0/24", n.net, 1+rail))
		if len(found[name]) != 1 || !subnet.Contains(found[name][0]) {
			return nil, fmt.Errorf("%s has %v, want one address of %s", name, found[name], subnet)
		}
		rails[name] = found[name][0]
	}
	return rails, nil
}

// deletePod deletes a pod whose sandboxes are gone.
func (n *attachNode) deletePod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := n.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Errorf("delete pod %s: %v", pod.Name, err)
	}
}
