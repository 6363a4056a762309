package selection

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/policy"
)

func TestIdentityOf(t *testing.T) {
	t.Parallel()
	all := policy.DefaultConfig()
	none := all
	none.StatefulSets, none.KubeVirt = false, false
	launched := map[string]string{"kubevirt.io": "virt-launcher"}
	for name, tt := range map[string]struct {
		pod, apiVersion, kind, owner string
		labels                       map[string]string
		config                       policy.Config
		want                         string
	}{
		"ordinal":                      {pod: "web-0", apiVersion: "apps/v1", kind: "StatefulSet", owner: "web", config: all, want: "StatefulSet/ai/web/0"},
		"ordinal of several digits":    {pod: "web-1-12", apiVersion: "apps/v1", kind: "StatefulSet", owner: "web-1", config: all, want: "StatefulSet/ai/web-1/12"},
		"no ordinal":                   {pod: "web-a", apiVersion: "apps/v1", kind: "StatefulSet", owner: "web", config: all},
		"an ordinal as no pod has it":  {pod: "web-01", apiVersion: "apps/v1", kind: "StatefulSet", owner: "web", config: all},
		"another name":                 {pod: "db-0", apiVersion: "apps/v1", kind: "StatefulSet", owner: "web", config: all},
		"StatefulSet of somebody else": {pod: "web-0", apiVersion: "apps.example.io/v1", kind: "StatefulSet", owner: "web", config: all},
		"StatefulSets off":             {pod: "web-0", apiVersion: "apps/v1", kind: "StatefulSet", owner: "web", config: none},
		"another kind":                 {pod: "web-0", apiVersion: "apps/v1", kind: "ReplicaSet", owner: "web", config: all},
		"machine":                      {pod: "virt-launcher-vm-x", apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", owner: "vm", labels: launched, config: all, want: "VirtualMachine/ai/vm"},
		"machine, not its launcher":    {pod: "hp-volume-x", apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", owner: "vm", config: all},
		"machines off":                 {pod: "virt-launcher-vm-x", apiVersion: "kubevirt.io/v1", kind: "VirtualMachineInstance", owner: "vm", labels: launched, config: none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &metav1.ObjectMeta{Namespace: "ai", Name: tt.pod, Labels: tt.labels, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "other"},
				{APIVersion: tt.apiVersion, Kind: tt.kind, Name: tt.owner, Controller: new(true)},
			}}
			if got := IdentityOf(pod, tt.config); got.String() != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if got := IdentityOf(&metav1.ObjectMeta{Namespace: "ai", Name: "web-0"}, all); got != (Identity{}) {
		t.Errorf("of a pod that nothing owns: %q", got)
	}
}

// TestMigration: the pod that a machine moves to has the machine's identity.
func TestMigration(t *testing.T) {
	t.Parallel()
	f := thePod(nil)
	f.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: "vm", Controller: new(true)}}
	f.Pod.Labels = map[string]string{"kubevirt.io": "virt-launcher"}
	s, err := Select(theCatalog(t), f)
	if err != nil || s.Migration || s.Identity.String() != "VirtualMachine/ai/vm" {
		t.Errorf("at home: identity %q, migration %v, %v", s.Identity, s.Migration, err)
	}
	f.Pod.Labels["kubevirt.io/migrationJobUID"] = "6c1d"
	if s, err = Select(theCatalog(t), f); err != nil || !s.Migration || s.Identity.String() != "VirtualMachine/ai/vm" {
		t.Errorf("the target: identity %q, migration %v, %v", s.Identity, s.Migration, err)
	}
	f.Pod.OwnerReferences = nil
	if s, err = Select(theCatalog(t), f); err != nil || s.Migration || s.Identity != (Identity{}) {
		t.Errorf("of no machine: identity %q, migration %v, %v", s.Identity, s.Migration, err)
	}
}

func TestIsWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ordinal, start, replicas int64
		want                     bool
	}{
		{0, 0, 1, true},
		{1, 0, 1, false},
		{4, 5, 3, false},
		{5, 5, 3, true},
		{7, 5, 3, true},
		{8, 5, 3, false},
		{0, 0, 0, false},
	} {
		if got := (Identity{Ordinal: tt.ordinal}).IsWithin(tt.start, tt.replicas); got != tt.want {
			t.Errorf("ordinal %d of %d from %d: %v", tt.ordinal, tt.replicas, tt.start, got)
		}
	}
}

// FuzzParseIdentity wants what was read to be written as it was, and everything
// else refused.
func FuzzParseIdentity(f *testing.F) {
	f.Add("StatefulSet/ai/web/0")
	f.Add("VirtualMachine/ai/vm")
	f.Add("StatefulSet/ai/web/-1")
	f.Add("VirtualMachine/ai/vm/0")
	f.Add("StatefulSet//web/007")
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseIdentity(text)
		switch {
		case err == nil && i.String() != text:
			t.Errorf("%q is read as %q", text, i)
		case err != nil && i != (Identity{}):
			t.Errorf("%q: %v, and yet %q", text, err, i)
		}
	})
}

func TestParseIdentity(t *testing.T) {
	t.Parallel()
	for _, want := range []Identity{{Kind: KindStatefulSet, Namespace: "ai", Name: "web", Ordinal: 12}, {Kind: KindVirtualMachine, Namespace: "ai", Name: "vm"}} {
		if got, err := ParseIdentity(want.String()); got != want || err != nil {
			t.Errorf("%q: %q, %v", want, got, err)
		}
	}
	for _, text := range []string{"", "x", "StatefulSet/ai/web", "StatefulSet/ai/web/01", "StatefulSet/ai/web/a", "VirtualMachine/ai", "VirtualMachine/ai/", "Pod/ai/x", "StatefulSet/ai//0"} {
		if got, err := ParseIdentity(text); err == nil {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}
