package kittest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/image"
	"railhead/hack/cluster/testcluster"
)

// TestNodes wants two nodes that the API server calls ready, of the version
// that was built.
func TestNodes(t *testing.T) {
	c := require(t)
	out := c.Kubectl(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status} {.status.nodeInfo.kubeletVersion}{"\n"}{end}`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("nodes %q, want 2", lines)
	}
	for _, line := range lines {
		if fields := strings.Fields(line); len(fields) != 3 || fields[1] != "True" || !strings.HasPrefix(fields[2], "v1.") {
			t.Errorf("node %q, want it ready and with the version of its kubelet", line)
		}
	}
}

// TestDeployment wants pods on both nodes to reach each other, and to be
// reached by exec, logs and port-forward.
func TestDeployment(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, testcluster.Web(10))
	c.RolledOut(t, ns, "deployment/web")

	all := c.pods(t, ns, "app=web")
	if len(all) != 10 {
		t.Fatalf("%d pods are running, want 10: %v", len(all), all)
	}
	one, other := onTwoNodes(t, all)
	t.Run("ping", func(t *testing.T) {
		c.Exec(t, ns, one.name, "ping", "-c", "1", "-w", "60", other.addresses[0])
		c.Exec(t, ns, other.name, "ping", "-c", "1", "-w", "60", one.addresses[0])
	})
	t.Run("exec", func(t *testing.T) {
		if got := strings.TrimSpace(c.Exec(t, ns, one.name, "hostname")); got != one.name {
			t.Errorf("exec tells the name %q, want %q", got, one.name)
		}
	})
	t.Run("exec with input", func(t *testing.T) {
		const text = "rails\nand more rails\n"
		got, err := c.TryKubectl(t.Context(), text, "exec", "-i", "-n", ns, one.name, "--", "cat")
		if err != nil || got != text {
			t.Errorf("cat gave %q: %v, want %q", got, err, text)
		}
	})
	t.Run("logs", func(t *testing.T) {
		if log := c.Kubectl(t, "logs", "-n", ns, one.name); !strings.Contains(log, "http ") {
			t.Errorf("the log of %s is %q, want where it listens", one.name, log)
		}
	})
	t.Run("port-forward", func(t *testing.T) {
		body := throughPortForward(t, c, ns, "pod/"+one.name)
		if !strings.Contains(body, one.name) {
			t.Errorf("through port-forward %s answers %q, want its name in it", one.name, body)
		}
	})
}

// throughPortForward asks port 8080 of something through kubectl port-forward.
func throughPortForward(t *testing.T, c *cluster, ns, object string) string {
	t.Helper()
	program, err := driver.Program(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, "--kubeconfig", c.Dir().Kubeconfig(), "port-forward", "-n", ns, object, ":8080")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		end()
		_ = cmd.Wait() // it was killed
	}()
	line, err := bufio.NewReader(out).ReadString('\n') // Forwarding from 127.0.0.1:40001 -> 8080
	if err != nil {
		t.Fatalf("port-forward: %v", err)
	}
	_, line, _ = strings.Cut(line, "from ")
	address, _, _ := strings.Cut(line, " ")
	return get(t, "http://"+address+"/")
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testcluster.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestService wants a Service to be reached by its address and by its name,
// from pods on both nodes.
func TestService(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, testcluster.Web(2))
	c.RolledOut(t, ns, "deployment/web")
	address := c.Kubectl(t, "get", "service", "web", "-n", ns, "-o", "jsonpath={.spec.clusterIP}")
	for _, p := range c.pods(t, ns, "app=web") {
		for _, host := range []string{address, "web", "web." + ns + ".svc.cluster.local"} {
			c.reaches(t, ns, p.name, host)
		}
	}
}

// TestWebhook wants the API server to reach an admission webhook behind a
// Service.
func TestWebhook(t *testing.T) {
	c := require(t)
	ns := c.Namespace(t)
	ca := c.webhook(t, ns, "mark")
	c.Apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: mark}
spec: {selector: {app: mark}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: v1
kind: Pod
metadata: {name: mark, labels: {app: mark}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: mark
    image: `+image.Tools+`
    command: [probe, webhook, --cert=/keys/tls.crt, --key=/keys/tls.key, --annotation=mark/seen=yes]
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
    volumeMounts: [{name: keys, mountPath: /keys}]
  volumes: [{name: keys, secret: {secretName: mark}}]
`)
	c.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", "pod/mark", "--timeout", testcluster.Patience.String())
	c.Kubectl(t, "create", "namespace", ns+"-marked")
	t.Cleanup(func() {
		_, _ = c.TryKubectl(context.Background(), "", "delete", "namespace", ns+"-marked", "--wait=false")
	})
	c.Apply(t, ns, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: `+ns+`}
webhooks:
- name: mark.railhead.io
  clientConfig: {service: {namespace: `+ns+`, name: mark, port: 443}, caBundle: `+ca+`}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+ns+`-marked}}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
`)
	t.Cleanup(func() { _, _ = c.TryKubectl(context.Background(), "", "delete", "mutatingwebhookconfiguration", ns) })
	testcluster.Eventually(t, func() string { // the API server hears of the configuration a moment later
		_, _ = c.TryKubectl(t.Context(), "", "delete", "configmap", "seen", "-n", ns+"-marked", "--ignore-not-found")
		if out, err := c.TryKubectl(t.Context(), "", "create", "configmap", "seen", "-n", ns+"-marked"); err != nil {
			return out + err.Error()
		}
		return testcluster.Missing("an annotation", c.Kubectl(t, "get", "configmap", "seen", "-n", ns+"-marked", "-o", `jsonpath={.metadata.annotations.mark/seen}`), "yes")
	})
}
