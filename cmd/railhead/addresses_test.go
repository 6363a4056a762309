package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"railhead/internal/golden"
	"railhead/internal/kubetest"
)

// TestAddresses prints the addresses of testdata/cluster/addresses.yaml, and
// explains its pods.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"addresses.txt":           {"addresses"},
		"addresses.pool.txt":      {"addresses", "--pool", "rail0"},
		"addresses.node.txt":      {"addresses", "--node", "n2", "-o", "wide"},
		"addresses.both.txt":      {"addresses", "--node", "n2", "--pool", "six"},
		"addresses.yaml":          {"addresses", "-o", "yaml", "--pool", "rail1"},
		"addresses.json":          {"addresses", "-o", "json", "--node", "n2"},
		"addresses.wide.txt":      {"addresses", "-o", "wide"},
		"addresses.short.txt":     {"addresses", "--pool", "rail1"},
		"addresses.absent.txt":    {"addresses", "--pool", "rail7"},
		"addresses.no-node.txt":   {"addresses", "--node", "n7"},
		"pools.txt":               {"pools"},
		"pools.wide.txt":          {"pools", "rail0", "-o", "wide"},
		"explain.pinned.txt":      {"explain", "pod", "ai/train-0"},
		"explain.both.txt":        {"explain", "pod", "web-a"},
		"explain.short.txt":       {"explain", "pod", "ai/waits"},
		"explain.pending.txt":     {"explain", "pod", "pending", "-n", "ai"},
		"explain.hopeless.txt":    {"explain", "pod", "ai/hopeless"},
		"explain.json":            {"explain", "pod", "ai/web-a", "-o", "json"},
		"explain.yaml":            {"explain", "pod", "ai/waits", "-o", "yaml"},
		"explain.absent.txt":      {"explain", "pod", "ai/nobody"},
		"explain.no-name.txt":     {"explain", "pod", "ai/a/b"},
		"explain.contradicts.txt": {"explain", "pod", "ai/train-0", "-n", "ml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, kubeconfig := newAPIServer(t, "addresses.yaml")
			compareRun(t, name, kubeconfig, args)
		})
	}
}

// compareRun runs a command line against an API server and compares what it
// prints.
func compareRun(t *testing.T, name, kubeconfig string, args []string) {
	t.Helper()
	stdout, stderr, status := railhead(t, append(args, "--kubeconfig", kubeconfig)...)
	got := stdout
	if filepath.Ext(name) == ".txt" {
		got += trailer(stderr, status)
	}
	golden.Equal(t, filepath.Join("testdata", "addresses", name), unnamed(got, kubeconfig))
}

// unnamed is what was printed without the names that differ from run to run.
func unnamed(text, kubeconfig string) string {
	return localServer.ReplaceAllString(strings.ReplaceAll(text, kubeconfig, "KUBECONFIG"), "https://API-SERVER")
}

// localServer is an API server of these tests.
var localServer = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// TestAddressesUnknown has the API server refuse what administrators may not
// read: what is left is shown.
func TestAddressesUnknown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		kinds  []string
		args   []string
	}{
		"forbidden.ledgers.txt":    {http.StatusForbidden, []string{"PoolLedger"}, []string{"addresses"}},
		"forbidden.leases.txt":     {http.StatusForbidden, []string{"AddressLease"}, []string{"addresses", "--node", "n7"}},
		"forbidden.books.txt":      {http.StatusForbidden, []string{"PoolLedger"}, []string{"pools"}},
		"no-crds.books.txt":        {http.StatusNotFound, []string{"PoolLedger"}, []string{"pools", "-o", "yaml", "rail0"}},
		"no-crds.all.txt":          {http.StatusNotFound, []string{"PoolLedger", "AddressLease", "SpiderIPPool", "SpiderReservedIP", "SpiderEndpoint"}, []string{"explain", "pod", "ai/waits"}},
		"no-crds.ledgers.txt":      {http.StatusNotFound, []string{"PoolLedger"}, []string{"addresses"}},
		"forbidden.endpoints.txt":  {http.StatusForbidden, []string{"SpiderEndpoint", "AddressLease", "SpiderIPPool"}, []string{"addresses"}},
		"forbidden.runs.txt":       {http.StatusForbidden, []string{"SpiderEndpoint"}, []string{"addresses", "--pool", "rail0"}},
		"forbidden.explain.txt":    {http.StatusForbidden, []string{"PoolLedger", "AddressLease", "Node", "ConfigMap", "SpiderReservedIP"}, []string{"explain", "pod", "ai/train-0"}},
		"forbidden.waits.txt":      {http.StatusForbidden, []string{"AddressLease", "SpiderEndpoint"}, []string{"explain", "pod", "ai/waits"}},
		"forbidden.pools.txt":      {http.StatusForbidden, []string{"SpiderIPPool", "NetworkAttachmentDefinition"}, []string{"explain", "pod", "ai/waits"}},
		"forbidden.pod.txt":        {http.StatusForbidden, []string{"Pod"}, []string{"explain", "pod", "ai/waits"}},
		"no-crds.explain.txt":      {http.StatusNotFound, []string{"PoolLedger", "AddressLease"}, []string{"explain", "pod", "ai/waits"}},
		"forbidden.replicaset.txt": {http.StatusForbidden, []string{"ReplicaSet"}, []string{"explain", "pod", "ai/web-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "addresses.yaml")
			for _, kind := range tt.kinds {
				a.answers[resources[kind]] = tt.status
			}
			compareRun(t, name, kubeconfig, tt.args)
		})
	}
}

// TestExplainReads wants what decides beside the pod to be read: configuration,
// what made the ReplicaSet, and the endpoint of a virtual machine by its name.
func TestExplainReads(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*testing.T, *apiServer)
		pod    string
	}{
		"explain.family-off.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			a.object(t, "ConfigMap", "spiderpool-conf")["data"] = map[string]any{"conf.yml": "enableIPv6: false"}
		}, "ai/web-a"},
		"explain.bad-config.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			a.object(t, "ConfigMap", "spiderpool-conf")["data"] = map[string]any{"conf.yml": "enableIPv6: maybe"}
		}, "ai/train-0"},
		"explain.machine.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			endpoint := a.object(t, "SpiderEndpoint", "train-0")
			a.Delete("/apis/spiderpool.spidernet.io/v2beta1/namespaces/ai/spiderendpoints/train-0")
			kubetest.Meta(endpoint)["name"] = "vm"
			a.Set(resources["SpiderEndpoint"], endpoint)
			metadata := a.object(t, "Pod", "train-0")["metadata"].(map[string]any)
			metadata["labels"] = map[string]any{"kubevirt.io": "virt-launcher"}
			metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "v", "controller": true}}
		}, "ai/train-0"},
		"explain.own.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			a.object(t, "SpiderIPPool", "rail1")["spec"].(map[string]any)["podAffinity"] = map[string]any{"matchLabels": map[string]any{
				"ipam.spidernet.io/app-api-group": "apps", "ipam.spidernet.io/app-api-version": "v1", "ipam.spidernet.io/app-kind": "Deployment",
				"ipam.spidernet.io/app-namespace": "ai", "ipam.spidernet.io/app-name": "web",
			}}
		}, "ai/web-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "addresses.yaml")
			tt.change(t, a)
			compareRun(t, name, kubeconfig, []string{"explain", "pod", tt.pod})
		})
	}
}

// TestExplainStates explains a pod in states in which it waits for nothing.
func TestExplainStates(t *testing.T) {
	t.Parallel()
	set := func(object map[string]any, field, key string, value any) {
		fields, _ := object[field].(map[string]any)
		if fields == nil {
			fields = map[string]any{}
		}
		fields[key], object[field] = value, fields
	}
	for name, tt := range map[string]struct {
		change func(t *testing.T, a *apiServer)
		args   []string
	}{
		"explain.host.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			set(a.object(t, "Pod", "waits"), "spec", "hostNetwork", true)
		}, []string{"ai/waits"}},
		"explain.ended.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			set(a.object(t, "Pod", "waits"), "status", "phase", "Succeeded")
		}, []string{"ai/waits"}},
		"explain.holds.yaml": {func(t *testing.T, a *apiServer) {
			t.Helper()
			set(a.object(t, "Pod", "train-0"), "status", "phase", "Failed")
		}, []string{"ai/train-0", "-o", "yaml"}},
		"explain.plain.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			set(a.object(t, "Pod", "waits"), "metadata", "annotations", nil)
		}, []string{"ai/waits"}},
		"explain.runs.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			set(a.object(t, "Pod", "waits"), "status", "phase", "Running")
		}, []string{"ai/waits"}},
		"explain.before.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			set(a.object(t, "Pod", "train-0"), "status", "phase", "Running")
			runs := a.object(t, "PoolLedger", "rail0")["spec"].(map[string]any)["runs"].([]any)
			runs[1] = map[string]any{"addresses": "172.16.11.9", "epoch": 5, "quarantine": map[string]any{
				"reason": "in use before Railhead", "since": "2026-01-01T00:00:00Z", "pod": "ai/train-0",
			}}
		}, []string{"ai/train-0"}},
		"explain.fenced.txt": {func(t *testing.T, a *apiServer) {
			t.Helper()
			a.fence(t, "n2")
		}, []string{"ai/waits"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "addresses.yaml")
			tt.change(t, a)
			compareRun(t, name, kubeconfig, append([]string{"explain", "pod"}, tt.args...))
		})
	}
}

// fence has the controller say that a node is fenced, and take all it had.
func (a *apiServer) fence(t *testing.T, node string) {
	t.Helper()
	a.object(t, "AddressLease", node)["status"] = map[string]any{
		"observedGeneration": 6, "nodeUID": "u-" + node,
		"reason": "fenced by the annotation railhead.io/fenced: the node gets no addresses until it is removed",
	}
	spec := a.object(t, "PoolLedger", "rail0")["spec"].(map[string]any)
	spec["runs"] = spec["runs"].([]any)[:1] // those of n1
	lease := a.object(t, "AddressLease", "n1")["status"].(map[string]any)["pools"].([]any)[0].(map[string]any)
	lease["grants"] = lease["grants"].([]any)[:1]
	a.keep("SpiderEndpoint", "web-a")
}

// TestLeases wants what leases say to be told beside who has what.
func TestLeases(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"leases.txt":      {"addresses", "--recheck", "1ms"},
		"leases.pool.txt": {"addresses", "--recheck", "1ms", "--pool", "rail0"},
		"leases.yaml":     {"addresses", "--recheck", "1ms", "--node", "n2", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "addresses.yaml")
			a.fence(t, "n2")
			a.object(t, "AddressLease", "n1")["metadata"].(map[string]any)["generation"] = 5
			compareRun(t, name, kubeconfig, args)
		})
	}
}

// TestNonsense wants what cannot be understood to be named, and an exit status
// that tells, beside conflicts too.
func TestNonsense(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"nonsense.txt":  {"addresses", "--recheck", "0"},
		"nonsense.json": {"addresses", "--recheck", "0", "--node", "n2", "--pool", "rail1", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "addresses.yaml")
			a.spoil(t)
			pins := a.object(t, "AddressLease", "n2")["spec"].(map[string]any)["pins"].([]any)
			pins[0].(map[string]any)["identity"] = "Nonsense"
			compareRun(t, name, kubeconfig, args)
		})
	}
}

// TestNothingHeld: that nothing is held is not said where a ledger could not be
// read.
func TestNothingHeld(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(spec map[string]any){
		"runs that cannot be understood": func(spec map[string]any) { spec["part"] = "172.16.12.0" },
		"runs of another type":           func(spec map[string]any) { spec["runs"] = "none" },
	} {
		a, kubeconfig := newAPIServer(t, "addresses.yaml")
		for _, kind := range []string{"SpiderEndpoint", "AddressLease"} {
			a.keep(kind, "")
		}
		a.keep("PoolLedger", "rail1")
		change(a.object(t, "PoolLedger", "rail1")["spec"].(map[string]any))
		stdout, stderr, status := railhead(t, "addresses", "--kubeconfig", kubeconfig)
		if status != exitFailed || stdout != "which addresses are held is not known\n" || !strings.Contains(stderr, "rail1") {
			t.Errorf("%s: exit status %d, standard output %q, standard error %q", name, status, stdout, stderr)
		}
	}
}

// spoil makes conflicts of every kind.
func (a *apiServer) spoil(t *testing.T) {
	t.Helper()
	ips := func(name string) []any {
		return a.object(t, "SpiderEndpoint", name)["status"].(map[string]any)["current"].(map[string]any)["ips"].([]any)
	}
	ips("train-0")[0].(map[string]any)["ipv4"] = "172.16.11.1/24" // that of web-a, which is n1's
	ips("web-a")[1].(map[string]any)["ipv4"] = "172.16.12.99/24"  // free
	pools := a.object(t, "AddressLease", "n2")["status"].(map[string]any)["pools"].([]any)
	grants := pools[0].(map[string]any)["grants"].([]any)
	grants[2].(map[string]any)["addresses"] = []any{"172.16.11.15-172.16.11.22"}
	grants[0].(map[string]any)["epoch"] = 4
	twin := map[string]any{"pool": "rail1", "part": "172.16.12.0-172.16.12.255", "epoch": 1, "runs": []any{
		map[string]any{"addresses": "172.16.12.20-172.16.12.30", "epoch": 1, "node": "n3"},
	}}
	a.Set(resources["PoolLedger"],
		map[string]any{"apiVersion": "railhead.io/v1alpha1", "kind": "PoolLedger", "metadata": map[string]any{"name": "twin"}, "spec": twin})
}

// TestConflicts wants conflicts shown, and an exit status that tells.
func TestConflicts(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"conflicts.txt":      {"addresses", "--recheck", "0"},
		"conflicts.pool.txt": {"addresses", "--recheck", "1ms", "--pool", "rail0"},
		"conflicts.node.txt": {"addresses", "--recheck", "1ms", "--node", "n3"},
		"conflicts.json":     {"addresses", "--recheck", "0", "-o", "json", "--node", "n3"},
		"explain.spoilt.txt": {"explain", "pod", "ai/train-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "addresses.yaml")
			a.spoil(t)
			compareRun(t, name, kubeconfig, args)
		})
	}
}

// TestConflictsPass: what differs for a moment is no conflict.
func TestConflictsPass(t *testing.T) {
	t.Parallel()
	a, kubeconfig := newAPIServer(t, "addresses.yaml")
	lease := a.object(t, "AddressLease", "n2")
	whole := lease["status"]
	lease["status"] = map[string]any{}
	a.later = func(asked int) { // the second look asks for the same again
		if asked > 4 {
			lease["status"] = whole
		}
	}
	stdout, stderr, status := railhead(t, "addresses", "--recheck", "1ms", "--kubeconfig", kubeconfig)
	if status != 0 || strings.Contains(stdout, "conflicts") || stderr != "" {
		t.Errorf("exit status %d, standard output %s, standard error %q", status, stdout, stderr)
	}
}

// TestAddressesBadBooks: a ledger that cannot be understood hides no other.
func TestAddressesBadBooks(t *testing.T) {
	t.Parallel()
	a, kubeconfig := newAPIServer(t, "addresses.yaml")
	a.object(t, "PoolLedger", "six")["spec"].(map[string]any)["part"] = "fd00::-10.0.0.1"
	a.object(t, "SpiderEndpoint", "train-1")["status"].(map[string]any)["current"].(map[string]any)["node"] = "n2"
	a.object(t, "SpiderEndpoint", "train-1")["status"].(map[string]any)["current"].(map[string]any)["ips"].([]any)[0].(map[string]any)["ipv4"] = "172.16.11.10"
	compareRun(t, "bad-books.txt", kubeconfig, []string{"addresses", "--recheck", "0"})
}

func TestAddressesRecheck(t *testing.T) {
	t.Parallel()
	if stdout, stderr, status := railhead(t, "addresses", "--recheck", "-1s"); status != exitFailed || stdout != "" || !strings.Contains(stderr, "want 0 or more") {
		t.Errorf("exit status %d, standard output %q, standard error %q", status, stdout, stderr)
	}
	_, kubeconfig := newAPIServer(t, "")
	if stdout, stderr, status := railhead(t, "addresses", "--kubeconfig", kubeconfig); status != 0 || stdout != "no addresses are held\n" || stderr != "" {
		t.Errorf("of an empty cluster: exit status %d, standard output %q, standard error %q", status, stdout, stderr)
	}
}

// FuzzPodName wants what is read to name the pod that was written, and nothing
// else to be taken for a name.
func FuzzPodName(f *testing.F) {
	f.Add("ai/train-0")
	f.Add("train-0")
	f.Add("/x")
	f.Fuzz(func(t *testing.T, text string) {
		flags := &clusterFlags{namespace: "ai"}
		namespace, name, err := flags.podName(text)
		if err == nil && (name == "" || namespace != "ai" || text != name && text != namespace+"/"+name || strings.Contains(name, "/")) {
			t.Errorf("%q is pod %q of namespace %q", text, name, namespace)
		}
	})
}
