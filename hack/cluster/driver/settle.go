package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"railhead/hack/cluster/component"
	"railhead/hack/cluster/plan"
)

// settle gives the API server what no component brings: the pod networks of
// nodes, and the cluster's DNS.
func (c *Cluster) settle(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	for _, n := range c.plan.Nodes {
		if err := setPodNetworks(ctx, client, n); err != nil {
			return fmt.Errorf("pod networks of %s: %w", n.Name, err)
		}
	}
	if err := awaitNamespace(ctx, client, metav1.NamespaceSystem); err != nil {
		return err
	}
	dns, err := component.DNS(c.plan)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, dns); err != nil {
		return err
	}
	c.progress.say("fabric: DNS is applied")
	return nil
}

// pollPause is the time between two looks at the API server.
const pollPause = 50 * time.Millisecond

// awaitNamespace waits for a namespace that the API server makes by itself,
// which may be after it has said that it is ready.
func awaitNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollPause, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, errors.Join(last, err))
	}
	return nil
}

// setPodNetworks makes the Node object, or completes that of a kubelet that
// was faster.
func setPodNetworks(ctx context.Context, client kubernetes.Interface, n plan.Node) error {
	var networks []string
	for _, p := range n.Pods {
		networks = append(networks, p.String())
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{corev1.LabelHostname: n.Name}},
		Spec:       corev1.NodeSpec{PodCIDR: networks[0], PodCIDRs: networks},
	}
	_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"podCIDR":%q,"podCIDRs":[`, networks[0])
	for i, p := range networks {
		patch = fmt.Appendf(patch, "%s%q", [...]string{"", ","}[min(i, 1)], p)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, append(patch, "]}}"...), metav1.PatchOptions{})
	return err
}

// Apply applies manifests as the administrator.
func (c *Cluster) Apply(ctx context.Context, manifests []byte) error {
	kubectl, err := c.programs.Path("kubectl")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", c.dir.Kubeconfig(), "apply", "--server-side", "--force-conflicts", "-f", "-")
	cmd.Stdin = bytes.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply: %w\n%s", err, out)
	}
	return nil
}

// awaitNodes waits until all nodes are ready.
func (c *Cluster) awaitNodes(ctx context.Context, want int) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	last := fmt.Errorf("0 of %d nodes are ready", want)
	err = wait.PollUntilContextCancel(ctx, pollPause, true, func(ctx context.Context) (bool, error) {
		ready, err := countReady(ctx, client)
		last = err
		if err == nil {
			last = fmt.Errorf("%d of %d nodes are ready", ready, want)
		}
		return err == nil && ready >= want, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", last, err)
	}
	return nil
}

// countReady counts the nodes that are ready.
func countReady(ctx context.Context, client kubernetes.Interface) (int, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	ready := 0
	for _, n := range nodes.Items {
		if isReady(&n) {
			ready++
		}
	}
	return ready, nil
}

func isReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
