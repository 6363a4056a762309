package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
)

// FuzzNetwork: no SpiderMultusConfig panics; defaults are filled in once and
// for all; what is accepted is accepted again after it was stored and read, and
// is then answered under its values.
func FuzzNetwork(f *testing.F) {
	for _, tc := range networkCases {
		f.Add([]byte(tc.yaml))
	}
	f.Add([]byte(`{metadata: {name: a, annotations: {a: "\x7f\x85", "<<": b}}, spec: {cniType: custom}}`)) // what JSON has, and not all YAML
	f.Fuzz(func(t *testing.T, text []byte) {
		obj := &v2beta1.SpiderMultusConfig{}
		if yaml.Unmarshal(text, obj) != nil {
			return
		}
		c := NewCatalog()
		c.Default(obj)
		once := obj.DeepCopy()
		if c.Default(obj); !cmp.Equal(once, obj) {
			t.Fatalf("defaults a second time: %s", cmp.Diff(once, obj))
		}
		r := c.Review(obj, nil)
		c.Put(obj)
		if diff := cmp.Diff(once, obj); diff != "" {
			t.Fatalf("a review changed the object: %s", diff)
		}
		n, served := c.Network(obj.Namespace, obj.Name)
		if r.OK() != served && obj.DeletionTimestamp == nil {
			t.Fatalf("served %t, and the review says %v", served, r.Errors)
		}
		if !served {
			return
		}
		stored, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		read := &v2beta1.SpiderMultusConfig{}
		if err := json.Unmarshal(stored, read); err != nil {
			t.Fatal(err)
		}
		c.Default(read)
		if r := c.Review(read, nil); !r.OK() {
			t.Fatalf("accepted, then refused when read again: %v", r.Errors)
		}
		for key, values := range n.Inject {
			for _, value := range values {
				if len(c.NetworksFor(key, value)) != 1 {
					t.Fatalf("not found by %s %q", key, value)
				}
			}
		}
		if c.Remove(obj); len(c.Networks())+len(c.networks.byName)+len(c.networks.byNAD)+len(c.networks.inject) != 0 {
			t.Fatalf("left behind: %+v", c.networks)
		}
	})
}

// FuzzCoordinator: no SpiderCoordinator panics, defaults are filled in once and
// for all, and never make a good one bad.
func FuzzCoordinator(f *testing.F) {
	for _, tc := range coordinatorCases {
		f.Add([]byte(tc.yaml))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		obj := &v2beta1.SpiderCoordinator{}
		if yaml.Unmarshal(text, obj) != nil {
			return
		}
		c := NewCatalog()
		written := c.Review(obj, nil)
		c.Default(obj)
		once := obj.DeepCopy()
		if c.Default(obj); !cmp.Equal(once, obj) {
			t.Fatalf("defaults a second time: %s", cmp.Diff(once, obj))
		}
		r := c.Review(obj, nil)
		if written.OK() && !r.OK() {
			t.Fatalf("good without defaults, refused with them: %v", r.Errors)
		}
		c.Put(obj)
		if _, served := c.Coordinator(obj.Name); served != r.OK() && obj.DeletionTimestamp == nil {
			t.Fatalf("served %t, and the review says %v", served, r.Errors)
		}
	})
}

// FuzzNAD: no NetworkAttachmentDefinition panics, and libcni loads the
// configurations that are accepted.
func FuzzNAD(f *testing.F) {
	for _, tc := range nadCases {
		f.Add(tc.object, tc.config)
	}
	f.Fuzz(func(t *testing.T, name, config string) {
		nad := &cniv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		nad.Spec.Config = config
		if !NewCatalog().Review(nad, nil).OK() || strings.TrimSpace(config) == "" {
			return
		}
		fields, err := object(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, several := fields["plugins"]; !several {
			if _, err := libcni.NetworkPluginConfFromBytes([]byte(config)); err != nil {
				t.Fatal(err)
			}
		} else if _, named := fields["name"]; named {
			if list, err := libcni.NetworkConfFromBytes([]byte(config)); err != nil || len(list.Plugins) == 0 {
				t.Fatalf("%v, %+v", err, list)
			}
		}
	})
}
