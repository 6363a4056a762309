package podresources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// claim is a container with a device by a resource claim.
func claim(device, share string, cdi ...string) *api.ContainerResources {
	resource := &api.ClaimResource{DriverName: "rail.example", PoolName: "node", DeviceName: device}
	if share != "" {
		resource.ShareId = &share
	}
	for _, name := range cdi {
		resource.CdiDevices = append(resource.CdiDevices, &api.CDIDevice{Name: name})
	}
	return &api.ContainerResources{DynamicResources: []*api.DynamicResource{
		{ClaimName: "rails", ClaimNamespace: "ai", ClaimResources: []*api.ClaimResource{resource}},
	}}
}

func TestHolders(t *testing.T) {
	t.Parallel()
	a, b := holder{namespace: "ai", name: "a"}, holder{namespace: "ai", name: "b"}
	shared := holder{namespace: "ai", name: "b", isShared: true}
	for name, test := range map[string]struct {
		answer *api.ListPodResourcesResponse
		want   map[string]holder
	}{
		"nothing": {answer(), map[string]holder{}},
		"two pods": {
			answer(pod("a", devices("0000:17:00.1", "0000:17:00.2")), pod("b", devices("0000:31:00.1"))),
			map[string]holder{"0000:17:00.1": a, "0000:17:00.2": a, "0000:31:00.1": b},
		},
		"two containers of one pod": {
			answer(pod("a", devices("0000:17:00.1"), devices("0000:17:00.1", "0000:17:00.2"))),
			map[string]holder{"0000:17:00.1": a, "0000:17:00.2": a},
		},
		"one device of two pods": {
			answer(pod("a", devices("0000:17:00.1")), pod("b", devices("0000:17:00.1"))),
			map[string]holder{"0000:17:00.1": shared},
		},
		"one device of two pods, in two containers of one": {
			answer(pod("a", devices("0000:17:00.1")), pod("b", devices("0000:17:00.1"), devices("0000:17:00.1"))),
			map[string]holder{"0000:17:00.1": shared},
		},
		"places in a shared pool": {answer(pod("a", devices("0", "17", "nvidia0"))), map[string]holder{}},
		"claim by name of the device": {
			answer(pod("a", claim("pci-0000-17-00-1", ""))), map[string]holder{"0000:17:00.1": a},
		},
		"claim by CDI device": {
			answer(pod("a", claim("rail0-vf3", "", "rail.example/vf=0000:17:00.1"))), map[string]holder{"0000:17:00.1": a},
		},
		"claim by both": {
			answer(pod("a", claim("0000-17-00-1", "", "rail.example/vf=0000:17:00.1"))), map[string]holder{"0000:17:00.1": a},
		},
		"claim of a share": {
			answer(pod("b", claim("0000-17-00-1", "2b9f"))), map[string]holder{"0000:17:00.1": shared},
		},
		"claim that names no function": {answer(pod("a", claim("rail0-vf3", ""))), map[string]holder{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, holders(test.answer), cmp.AllowUnexported(holder{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPCIAddress(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"0000:17:00.1":               "0000:17:00.1",
		"00FF:AB:1f.7":               "00ff:ab:1f.7",
		"0000-17-00-1":               "0000:17:00.1",
		"pci-0000-17-00-1":           "0000:17:00.1",
		"vendor.com/vf=0000:17:00.1": "0000:17:00.1",
		"x0000:17:00.1":              "",
		"10000:17:00.1":              "",
		"0000:17:00.8":               "",
		"0000:17:00.1 ":              "",
		"0000:17:00-1":               "",
		"0000-17:00.1":               "",
		"0000:17:0g.1":               "",
		"17:00.1":                    "",
		"":                           "",
	} {
		if got, ok := pciAddress(name); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %t, want %q", name, got, ok, want)
		}
	}
}

// FuzzPCIAddress holds that what is found is an address and stands in the name,
// and that it is found again in itself.
func FuzzPCIAddress(f *testing.F) {
	f.Add("vendor.com/vf=0000:17:00.1")
	f.Add("pci-0000-17-00-1")
	f.Add("0000:17:00.8")
	f.Fuzz(func(t *testing.T, name string) {
		address, ok := pciAddress(name)
		if !ok {
			return
		}
		dashed := strings.NewReplacer(":", "-", ".", "-").Replace(address)
		if lower := strings.ToLower(name); !strings.HasSuffix(lower, address) && !strings.HasSuffix(lower, dashed) {
			t.Errorf("%q is not at the end of %q", address, name)
		}
		for _, same := range []string{address, dashed, "x=" + address, "x-" + dashed} {
			if again, ok := pciAddress(same); !ok || again != address {
				t.Errorf("%q: %q, %t, want %q", same, again, ok, address)
			}
		}
	})
}
