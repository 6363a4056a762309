package injection

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/golden"
	"railhead/internal/policy"
)

const (
	rdma    = v2beta1.AnnotationInjectRDMA
	network = v2beta1.AnnotationInjectNetwork
)

// rail is a macvlan network that lacks nothing.
func rail(namespace, name, resource string) policy.Network {
	return policy.Network{
		Namespace: namespace, Name: name, NAD: name, Type: v2beta1.CNIMacvlan, IPAM: true,
		Resource: resource, Pools: policy.Pools{IPv4: []string{"pool"}},
	}
}

// with changes a network.
func with(n policy.Network, change func(*policy.Network)) policy.Network {
	change(&n)
	return n
}

// fabric is what Find finds in these tests, by "key=value".
func fabric(key, value string) []policy.Network {
	noPools := func(n *policy.Network) { n.Pools = policy.Pools{} }
	ofType := func(t v2beta1.CNIType) func(*policy.Network) {
		return func(n *policy.Network) { n.Type, n.Resource = t, "" }
	}
	named := func(nad string) func(*policy.Network) { return func(n *policy.Network) { n.NAD = nad } }
	return map[string][]policy.Network{
		rdma + "=one":     {rail("ai", "a", "example.com/a")},
		rdma + "=two":     {rail("ai", "a", "example.com/a"), rail("ai", "b", "example.com/b")},
		rdma + "=same":    {rail("ai", "v1", "example.com/vf"), rail("ai", "v2", "example.com/vf"), rail("ai", "v3", "example.com/vf")},
		rdma + "=ipoib":   {with(rail("ai", "ib0", ""), ofType(v2beta1.CNIIPoIB))},
		rdma + "=vlan":    {with(rail("ai", "vlan7", "example.com/a"), func(n *policy.Network) { n.Type, n.VLAN = v2beta1.CNIVlan, 7 })},
		rdma + "=renamed": {with(rail("ai", "a", "example.com/a"), named("a-net"))},
		rdma + "=lacking": {
			rail("ai", "good", "example.com/a"),
			rail("ai", "deviceless", ""),
			with(rail("ai", "poolless", "example.com/c"), noPools),
			with(with(rail("ai", "vf", "example.com/d"), ofType(v2beta1.CNIIBSRIOV)), noPools),
			with(with(rail("ai", "ib1", ""), ofType(v2beta1.CNIIPoIB)), noPools),
			with(rail("ai", "bridge", ""), ofType(v2beta1.CNIOVS)),
		},
		network + "=one":      {rail("ai", "n", "example.com/n")},
		network + "=underlay": {with(rail("ai", "u", ""), noPools)},
		network + "=lacking":  {with(rail("ai", "n", "example.com/n"), noPools)},
	}[key+"="+value]
}

// values are those that fabric knows.
func values(key string) []string {
	if key == rdma {
		return []string{"ipoib", "lacking", "one", "renamed", "same", "two", "vlan"}
	}
	return []string{"lacking", "one", "underlay"}
}

// pod has one container for each list of resources, which are "name=limit" or
// "name=limit/request"; a list that begins with "sidecar:" or "init:" is an init
// container's.
func pod(annotations map[string]string, containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Annotations: annotations}}
	for _, text := range containers {
		kind, list, named := strings.Cut(text, ":")
		if !named {
			list = text
		}
		c := corev1.Container{Resources: resources(list)}
		switch kind {
		case "sidecar":
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		case "init":
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

func resources(list string) corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	for entry := range strings.FieldsSeq(list) {
		name, amounts, _ := strings.Cut(entry, "=")
		limit, request, requested := strings.Cut(amounts, "/")
		if limit != "" {
			if r.Limits == nil {
				r.Limits = corev1.ResourceList{}
			}
			r.Limits[corev1.ResourceName(name)] = resource.MustParse(limit)
		}
		if requested {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[corev1.ResourceName(name)] = resource.MustParse(request)
		}
	}
	return r
}

// containersOf is the other way round.
func containersOf(p *corev1.Pod) []string {
	var texts []string
	for _, c := range p.Spec.Containers {
		texts = append(texts, written(c.Resources))
	}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil {
			texts = append(texts, "sidecar:"+written(c.Resources))
		} else {
			texts = append(texts, "init:"+written(c.Resources))
		}
	}
	return texts
}

func written(r corev1.ResourceRequirements) string {
	names := map[corev1.ResourceName]bool{}
	for name := range r.Limits {
		names[name] = true
	}
	for name := range r.Requests {
		names[name] = true
	}
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		entry := string(name) + "="
		if limit, ok := r.Limits[name]; ok {
			entry += limit.String()
		}
		if request, ok := r.Requests[name]; ok {
			entry += "/" + request.String()
		}
		entries = append(entries, entry)
	}
	return strings.Join(entries, " ")
}

const (
	elementA = `{"name":"a","namespace":"ai"}`
	elementB = `{"name":"b","namespace":"ai"}`
)

func TestInject(t *testing.T) {
	for _, tt := range []struct {
		name       string
		pod        map[string]string
		namespace  map[string]string
		containers []string

		networks       string // of the pod afterwards
		wantContainers []string
		warnings       []string
	}{
		{
			name: "asks for nothing", pod: map[string]string{"other": "x"}, containers: []string{"cpu=1"},
			wantContainers: []string{"cpu=1"},
		},
		{
			name: "one network", pod: map[string]string{rdma: "one"}, containers: []string{"cpu=1", ""},
			networks: "[" + elementA + "]", wantContainers: []string{"cpu=1 example.com/a=1", ""},
		},
		{
			name: "several values, one network twice", pod: map[string]string{rdma: " two, one,two,"}, containers: []string{""},
			networks: "[" + elementA + "," + elementB + "]", wantContainers: []string{"example.com/a=1 example.com/b=1"},
		},
		{
			name: "several configs of one resource", pod: map[string]string{rdma: "same"}, containers: []string{""},
			networks:       `[{"name":"v1","namespace":"ai"},{"name":"v2","namespace":"ai"},{"name":"v3","namespace":"ai"}]`,
			wantContainers: []string{"example.com/vf=3"},
		},
		{
			name: "IPoIB has no resource", pod: map[string]string{rdma: "ipoib"}, containers: []string{""},
			networks: `[{"name":"ib0","namespace":"ai"}]`, wantContainers: []string{""},
		},
		{
			name: "the definition has another name", pod: map[string]string{rdma: "renamed"}, containers: []string{""},
			networks: `[{"name":"a-net","namespace":"ai"}]`, wantContainers: []string{"example.com/a=1"},
		},
		{
			name: "network without resource", pod: map[string]string{network: "underlay"}, containers: []string{""},
			networks: `[{"name":"u","namespace":"ai"}]`, wantContainers: []string{""},
		},
		{
			name: "VLANs with RDMA", pod: map[string]string{rdma: "vlan"}, containers: []string{""},
			networks: `[{"name":"vlan7","namespace":"ai"}]`, wantContainers: []string{"example.com/a=1"},
		},
		{
			name: "first key before second", pod: map[string]string{rdma: "one", network: "one"}, containers: []string{""},
			networks: "[" + elementA + "]", wantContainers: []string{"example.com/a=1"},
		},
		{
			name: "of the namespace", namespace: map[string]string{rdma: "one"}, containers: []string{""},
			networks: "[" + elementA + "]", wantContainers: []string{"example.com/a=1"},
		},
		{
			name: "pod before namespace", pod: map[string]string{rdma: "ipoib"}, namespace: map[string]string{rdma: "one"},
			containers: []string{""}, networks: `[{"name":"ib0","namespace":"ai"}]`, wantContainers: []string{""},
		},
		{
			name: "pod before namespace, whatever the key", pod: map[string]string{network: "underlay"}, namespace: map[string]string{rdma: "one"},
			containers: []string{""}, networks: `[{"name":"u","namespace":"ai"}]`, wantContainers: []string{""},
		},
		{
			name: "empty on the pod", pod: map[string]string{rdma: " , "}, namespace: map[string]string{rdma: "one"}, containers: []string{""},
			networks: "[" + elementA + "]", wantContainers: []string{"example.com/a=1"},
			warnings: []string{"annotation cni.spidernet.io/rdma-resource-inject is empty and has no effect: want a value that SpiderMultusConfigs carry, or several with commas"},
		},
		{
			name: "behind what is listed, short form", pod: map[string]string{rdma: "two", cniv1.AnnotationNetworks: "x, kube-system/y@net9"}, containers: []string{""},
			networks:       `[{"name":"x"},{"name":"y","namespace":"kube-system","interface":"net9"},` + elementA + "," + elementB + "]",
			wantContainers: []string{"example.com/a=1 example.com/b=1"},
		},
		{
			name: "behind what is listed, JSON form",
			pod: map[string]string{rdma: "two", cniv1.AnnotationNetworks: `[
				{"namespace": "ai", "name": "b", "interface": "net1", "mac": "02:00:00:00:00:01", "example.com/x": {"y": [1, "<"]}}]`},
			containers:     []string{""},
			networks:       `[{"namespace":"ai","name":"b","interface":"net1","mac":"02:00:00:00:00:01","example.com/x":{"y":[1,"<"]}},` + elementA + "]",
			wantContainers: []string{"example.com/a=1 example.com/b=1"},
		},
		{
			name: "all listed already, and one twice", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: "ai/a@rail0,ai/a@rail1"}, containers: []string{""},
			networks: "ai/a@rail0,ai/a@rail1", wantContainers: []string{"example.com/a=2"},
		},
		{
			name: "listed networks that were not asked for count for nothing", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: "ai/b"}, containers: []string{""},
			networks: `[{"name":"b","namespace":"ai"},` + elementA + "]", wantContainers: []string{"example.com/a=1"},
		},
		{
			name: "a container asks already", pod: map[string]string{rdma: "one"}, containers: []string{"", "example.com/a=1"},
			networks: "[" + elementA + "]", wantContainers: []string{"", "example.com/a=1"},
		},
		{
			name: "never lowered", pod: map[string]string{rdma: "one"}, containers: []string{"example.com/a=8"},
			networks: "[" + elementA + "]", wantContainers: []string{"example.com/a=8"},
		},
		{
			name: "raised where it is asked for first", pod: map[string]string{rdma: "same"}, containers: []string{"", "example.com/vf=1", "example.com/vf=1"},
			networks:       `[{"name":"v1","namespace":"ai"},{"name":"v2","namespace":"ai"},{"name":"v3","namespace":"ai"}]`,
			wantContainers: []string{"", "example.com/vf=2", "example.com/vf=1"},
		},
		{
			name: "requests are raised with limits", pod: map[string]string{rdma: "same"}, containers: []string{"example.com/vf=1/1"},
			networks:       `[{"name":"v1","namespace":"ai"},{"name":"v2","namespace":"ai"},{"name":"v3","namespace":"ai"}]`,
			wantContainers: []string{"example.com/vf=3/3"},
		},
		{
			name: "a request without limit gets one", pod: map[string]string{rdma: "same"}, containers: []string{"example.com/vf=/1"},
			networks:       `[{"name":"v1","namespace":"ai"},{"name":"v2","namespace":"ai"},{"name":"v3","namespace":"ai"}]`,
			wantContainers: []string{"example.com/vf=3/3"},
		},
		{
			name: "none, said in so many words", pod: map[string]string{rdma: "one"}, containers: []string{"", "example.com/a=0"},
			networks: "[" + elementA + "]", wantContainers: []string{"", "example.com/a=1"},
		},
		{
			name: "sidecars count", pod: map[string]string{rdma: "same"}, containers: []string{"", "sidecar:example.com/vf=2"},
			networks:       `[{"name":"v1","namespace":"ai"},{"name":"v2","namespace":"ai"},{"name":"v3","namespace":"ai"}]`,
			wantContainers: []string{"", "sidecar:example.com/vf=3"},
		},
		{
			name: "init containers do not", pod: map[string]string{rdma: "one"}, containers: []string{"", "init:example.com/a=1"},
			networks: "[" + elementA + "]", wantContainers: []string{"example.com/a=1", "init:example.com/a=1"},
		},
		{
			name: "absurd amounts", pod: map[string]string{rdma: "same"}, containers: []string{"example.com/vf=-4", "example.com/vf=9223372036854775807", "example.com/vf=9223372036854775807"},
			networks:       `[{"name":"v1","namespace":"ai"},{"name":"v2","namespace":"ai"},{"name":"v3","namespace":"ai"}]`,
			wantContainers: []string{"example.com/vf=-4", "example.com/vf=9223372036854775807", "example.com/vf=9223372036854775807"},
		},
		{
			name: "a misspelt annotation beside it", pod: map[string]string{rdma: "one", "k8s.v1.cni.cncf.io/netwroks": "a"},
			networks: "[" + elementA + "]",
			warnings: []string{"annotation k8s.v1.cni.cncf.io/netwroks has no effect here: did you mean k8s.v1.cni.cncf.io/networks?"},
		},
		{
			name: "no container, which the API server refuses", pod: map[string]string{rdma: "one"},
			networks: "[" + elementA + "]",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pod(maps.Clone(tt.pod), tt.containers...)
			before := p.DeepCopy()
			result, err := Inject(p, tt.namespace, fabric, values)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.networks, p.Annotations[cniv1.AnnotationNetworks]); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantContainers, containersOf(p)); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, result.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if changed := !cmp.Equal(before, p); result.Changed != changed {
				t.Errorf("Changed = %t, the pod changed: %t", result.Changed, changed)
			}
			injectAgain(t, p, tt.namespace)
		})
	}
}

// injectAgain wants a pod to stay as it is when the API server calls again.
func injectAgain(t *testing.T, p *corev1.Pod, namespace map[string]string) {
	t.Helper()
	once := p.DeepCopy()
	result, err := Inject(p, namespace, fabric, values)
	if err != nil {
		t.Fatal("again:", err)
	}
	if diff := cmp.Diff(once, p); diff != "" || result.Changed {
		t.Errorf("again: Changed = %t (-once +twice):\n%s", result.Changed, diff)
	}
}

// TestInjectSpec is what the webhook section of spec/003 prints.
func TestInjectSpec(t *testing.T) {
	find := func(key, value string) []policy.Network {
		if key != rdma || value != "rdma-network" {
			return nil
		}
		var rails []policy.Network
		for i := range 8 {
			rails = append(rails, rail("spiderpool", fmt.Sprintf("gpu%d-sriov", i+1), fmt.Sprintf("spidernet.io/gpu%drdma", i+1)))
		}
		return rails
	}
	p := pod(map[string]string{rdma: "rdma-network"}, "")
	if _, err := Inject(p, nil, find, values); err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal([]byte(p.Annotations[cniv1.AnnotationNetworks]), &got); err != nil {
		t.Fatal(err)
	}
	var want any
	printed := `[{"name":"gpu1-sriov","namespace":"spiderpool"}, {"name":"gpu2-sriov","namespace":"spiderpool"}, {"name":"gpu3-sriov","namespace":"spiderpool"}, {"name":"gpu4-sriov","namespace":"spiderpool"}, {"name":"gpu5-sriov","namespace":"spiderpool"}, {"name":"gpu6-sriov","namespace":"spiderpool"}, {"name":"gpu7-sriov","namespace":"spiderpool"}, {"name":"gpu8-sriov","namespace":"spiderpool"}]`
	if err := json.Unmarshal([]byte(printed), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("networks (-spec +got):\n%s", diff)
	}
	limits := "spidernet.io/gpu1rdma=1 spidernet.io/gpu2rdma=1 spidernet.io/gpu3rdma=1 spidernet.io/gpu4rdma=1 spidernet.io/gpu5rdma=1 spidernet.io/gpu6rdma=1 spidernet.io/gpu7rdma=1 spidernet.io/gpu8rdma=1"
	if diff := cmp.Diff([]string{limits}, containersOf(p)); diff != "" {
		t.Errorf("limits (-spec +got):\n%s", diff)
	}
}

func TestInjectRefuses(t *testing.T) {
	var said strings.Builder
	for _, tt := range []struct {
		name        string
		pod         map[string]string
		namespace   map[string]string
		hostNetwork bool
	}{
		{name: "nothing has the value", pod: map[string]string{rdma: "absent"}},
		{name: "nothing has one of the values", pod: map[string]string{network: "one,absent"}},
		{name: "nothing has the namespace's value", namespace: map[string]string{network: "absent"}},
		{name: "the value of another key", pod: map[string]string{network: "two"}},
		{name: "a value misspelt", pod: map[string]string{rdma: "vlam"}},
		{name: "a JSON list of values", pod: map[string]string{rdma: `["one", "two"]`}},
		{name: "a JSON object", namespace: map[string]string{rdma: `{"one": 1}`}},
		{name: "networks for RDMA that lack something", pod: map[string]string{rdma: "one, lacking, absent"}},
		{name: "a network that lacks pools", pod: map[string]string{network: "lacking"}},
		{name: "host network", pod: map[string]string{rdma: "one"}, hostNetwork: true},
		{name: "networks: no JSON", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `[{"name": "x"`}},
		{name: "networks: no list", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `{"name": "x"}`}},
		{name: "networks: list of names", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `["x"]`}},
		{name: "networks: no name", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `[{"name": "x"}, {"interface": "net1"}]`}},
		{name: "networks: name is a number", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `[{"name": 5}]`}},
		{name: "networks: null", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `[null]`}},
		{name: "networks: empty item", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `x,,y`}},
		{name: "networks: bad namespace", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `A/x`}},
		{name: "networks: two slashes", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `a/b/x`}},
		{name: "networks: no interface", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `x@`}},
		{name: "networks: long interface", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `x@interface1234567`}},
		{name: "networks: bad interface", pod: map[string]string{rdma: "one", cniv1.AnnotationNetworks: `x@a b`}},
	} {
		p := pod(maps.Clone(tt.pod), "")
		p.Spec.HostNetwork = tt.hostNetwork
		before := p.DeepCopy()
		_, err := Inject(p, tt.namespace, fabric, values)
		var wrong *field.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s: got error %v, want a *field.Error", tt.name, err)
			continue
		}
		if diff := cmp.Diff(before, p); diff != "" {
			t.Errorf("%s: the pod was refused and changed (-before +after):\n%s", tt.name, diff)
		}
		fmt.Fprintf(&said, "%s\n\t%s\n", tt.name, err)
	}
	golden.Equal(t, "testdata/refusals.txt", said.String())
}

func TestInjectHostNetworkByNamespace(t *testing.T) {
	p := pod(nil, "")
	p.Spec.HostNetwork = true
	before := p.DeepCopy()
	result, err := Inject(p, map[string]string{rdma: "one"}, fabric, values)
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Warnings: []string{"annotation cni.spidernet.io/rdma-resource-inject of the namespace does not count for this pod: it uses the host's network (spec.hostNetwork)"}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, p); diff != "" {
		t.Errorf("the pod changed (-before +after):\n%s", diff)
	}
}

func TestAsks(t *testing.T) {
	for _, tt := range []struct {
		annotations map[string]string
		want        bool
	}{
		{nil, false},
		{map[string]string{rdma: ""}, false},
		{map[string]string{rdma: "", network: "x"}, true},
		{map[string]string{rdma: "x"}, true},
		{map[string]string{cniv1.AnnotationNetworks: "x"}, false},
	} {
		if got := Asks(tt.annotations); got != tt.want {
			t.Errorf("Asks(%v) = %t, want %t", tt.annotations, got, tt.want)
		}
	}
}
