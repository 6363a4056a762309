package cniserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/npwg"
)

// TestVariants attaches pods of several kinds, and takes them away without a trace.
func TestVariants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		prepare     func(w *world)
		check       func(w *world, s *box, result *types100.Result)
		networks    int // in the status; 0: there is none
	}{
		{
			name: "the default network alone",
			check: func(w *world, _ *box, _ *types100.Result) {
				if w.addresses.next > 0 {
					w.t.Error("addresses were asked for")
				}
			},
		},
		{
			name: "another default network", networks: 2,
			annotations: map[string]string{cniv1.AnnotationDefaultNetwork: "ai/gpu1", cniv1.AnnotationNetworks: "gpu2@rail"},
			prepare:     func(w *world) { w.cluster.nad("gpu1", railConfig(0)) },
			check: func(w *world, s *box, r *types100.Result) {
				if len(r.Interfaces) != 1 || r.Interfaces[0].Name != "eth0" || r.Interfaces[0].Sandbox != s.path || len(r.IPs) != 1 || len(r.Routes) != 1 {
					w.t.Errorf("result %+v, want eth0 of ours", r)
				}
				if calls := w.delegate.asked(); len(calls) > 0 {
					w.t.Errorf("plugins of others: %q, want none", calls)
				}
			},
		},
		{
			name: "addresses of another's IPAM", networks: 2,
			annotations: map[string]string{cniv1.AnnotationNetworks: "local"},
			prepare: func(w *world) {
				w.cluster.nad("local", fmt.Sprintf(`{"cniVersion":"1.0.0","type":"macvlan","master":%q,"ipam":{"type":"host-local"}}`, rail(0)))
				w.delegate.results = map[string]*types100.Result{"host-local": {CNIVersion: "1.1.0", IPs: []*types100.IPConfig{
					{Address: ipNet(netip.MustParsePrefix("172.16.11.77/24")), Gateway: netip.MustParseAddr("172.16.11.254").AsSlice()},
				}}}
			},
			check: func(w *world, s *box, _ *types100.Result) {
				w.hasAddress(s, "172.16.11.77/24")
				if calls := strings.Join(w.delegate.asked(), ","); !strings.HasSuffix(calls, "ADD host-local net1") {
					w.t.Errorf("plugins of others: %s", calls)
				}
			},
		},
		{
			name: "default-route", networks: 2,
			annotations: map[string]string{cniv1.AnnotationNetworks: `[{"name":"gpu1","default-route":["172.16.11.254"]}]`},
			prepare: func(w *world) {
				w.cluster.nad("gpu1", fmt.Sprintf(`{"cniVersion":"1.0.0","type":"macvlan","master":%q,"ipam":{"type":"spiderpool","default_ipv4_ippool":["gpu1"]}}`, rail(0)))
			},
			check: func(w *world, s *box, _ *types100.Result) {
				routes, err := s.client.Routes()
				if err != nil {
					w.t.Fatal(err)
				}
				for _, r := range routes {
					if r.Table == 254 && r.Dst.Bits() == 0 && r.Gateway != netip.MustParseAddr("172.16.11.254") {
						w.t.Errorf("default route %+v, want that of net1", r)
					}
				}
			},
		},
		{
			name: "an address and a MAC address that are asked for", networks: 2,
			annotations: map[string]string{cniv1.AnnotationNetworks: `[{"name":"gpu1","ips":["172.16.11.9/24"],"mac":"02:11:22:33:44:55"}]`},
			check: func(w *world, s *box, _ *types100.Result) {
				link, err := s.client.LinkByName("net1")
				if err != nil || link.Address != "02:11:22:33:44:55" {
					w.t.Errorf("net1 %+v, %v", link, err)
				}
			},
		},
		{
			name: "both families", networks: 2,
			annotations: map[string]string{cniv1.AnnotationNetworks: "dual"},
			prepare: func(w *world) {
				w.cluster.pool(w.t, "six", "{subnet: 'fd00:11::/64', ips: ['fd00:11::1-fd00:11::ff']}")
				w.cluster.nad("dual", fmt.Sprintf(`{"cniVersion":"1.0.0","type":"macvlan","master":%q,"ipam":{"type":"spiderpool","default_ipv4_ippool":["gpu1"],"default_ipv6_ippool":["six"]}}`, rail(0)))
			},
			check: func(w *world, s *box, _ *types100.Result) {
				w.hasAddress(s, "172.16.11.1/24")
				w.hasAddress(s, "fd00:11::1/64")
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.cluster.pod("one", tt.annotations)
				if tt.prepare != nil {
					tt.prepare(w)
				}
				s := w.sandbox("box1", "one")
				before := w.snapshot(s)
				var result types100.Result
				if err := json.Unmarshal(w.ok(s, cnicall.Add), &result); err != nil {
					t.Fatal(err)
				}
				tt.check(w, s, &result)
				if tt.networks > 0 {
					<-w.cluster.patched
					w.countStatus("ai/one", tt.networks)
				}
				w.ok(s, cnicall.Check)
				w.ok(s, cnicall.Del)
				w.rest()
				if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
					t.Errorf("left behind (-before +after):\n%s", diff)
				}
				w.checkNothingLeft()
				if n := len(w.cluster.patches["ai/one"]); n > 1 || n == 1 && tt.networks == 0 {
					t.Errorf("%d patches", n)
				}
			})
		})
	}
}

func (w *world) hasAddress(s *box, text string) {
	w.t.Helper()
	addresses, err := s.client.Addresses()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range addresses {
		if a.Prefix == netip.MustParsePrefix(text) {
			return
		}
	}
	w.t.Errorf("no address %s in %+v", text, addresses)
}

// countStatus counts the networks that a pod was told of.
func (w *world) countStatus(key string, n int) []npwg.NetworkStatus {
	w.t.Helper()
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	var patch struct {
		Metadata struct{ Annotations map[string]string }
	}
	list := w.cluster.patches[key]
	if err := json.Unmarshal([]byte(list[len(list)-1]), &patch); err != nil {
		w.t.Fatal(err)
	}
	status, err := npwg.ParseStatus(patch.Metadata.Annotations[npwg.AnnotationStatus])
	if err != nil || len(status) != n {
		w.t.Errorf("status %+v, %v, want %d networks", status, err, n)
	}
	return status
}

// TestDevices gives a network a device that was allocated, whose description is in
// the status.
func TestDevices(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.stop()
		dir := t.TempDir()
		w.extend = func(c *Config) {
			c.DeviceInfo = dir
			c.Allocated = func(uid string) map[string][]string {
				return map[string][]string{"spidernet.io/gpu1": {"0000:11:00.2"}}
			}
		}
		w.start()
		w.cluster.nads["ai/gpu1"].Annotations = map[string]string{cniv1.AnnotationResourceName: "spidernet.io/gpu1"}
		info := filepath.Join(dir, npwg.PluginDeviceFile("spidernet.io/gpu1", "0000:11:00.2"))
		if err := os.MkdirAll(filepath.Dir(info), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(info, []byte(`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:11:00.2","rdma-device":"mlx5_3"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		w.cluster.pod("one", map[string]string{cniv1.AnnotationNetworks: "gpu1"})
		s := w.sandbox("box1", "one")
		w.ok(s, cnicall.Add)
		<-w.cluster.patched
		if status := w.countStatus("ai/one", 2); status[1].DeviceInfo == nil || status[1].DeviceInfo.PCI.RDMADevice != "mlx5_3" {
			t.Errorf("status %+v, want the device", status[1])
		}
		w.ok(s, cnicall.Del)
		if left, err := os.ReadDir(filepath.Join(dir, "cni")); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	})
}

// TestMany attaches and detaches many pods at once.
func TestMany(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		var all sync.WaitGroup
		var boxes []*box
		for n := range 12 {
			pod := fmt.Sprintf("many%d", n)
			w.cluster.pod(pod, map[string]string{cniv1.AnnotationNetworks: eightNetworks()})
			boxes = append(boxes, w.sandbox(fmt.Sprintf("box%d", n), pod))
		}
		before := w.snapshot(boxes[0])
		for _, command := range []string{cnicall.Add, cnicall.Check, cnicall.Del} {
			for _, s := range boxes {
				all.Go(func() {
					if answer := w.server.Handle(context.Background(), s.request(command)); answer.Error != nil {
						t.Errorf("%s %s: %v", command, s.pod, answer.Error)
					}
				})
			}
			all.Wait()
		}
		w.rest()
		if diff := cmp.Diff(before, w.snapshot(boxes[0]), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}
