package cniserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestInUse: a shared link goes with the last pod that stands on it, also when all
// of them go at once.
func TestInUse(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.stop() // which repairs nothing
		on := func(link string) *attach.Plan {
			return &attach.Plan{Shared: []attach.SharedLink{{Name: link, Kind: "vlan"}}}
		}
		for _, att := range []record.Attachment{
			{ContainerID: "gone1", State: record.Detaching, BootID: boot, Plan: on("rail.5")},
			{ContainerID: "gone2", State: record.Detaching, BootID: boot, Plan: on("rail.5")},
			{ContainerID: "old", State: record.Attached, BootID: "older", Plan: on("rail.5")},
			{ContainerID: "plain", State: record.Attached, BootID: boot},
			{ContainerID: "runs", State: record.Attached, BootID: boot, Plan: on("rail.6")},
			{ContainerID: "comes", State: record.Attaching, BootID: boot, Plan: on("rail.7")},
		} {
			if _, err := w.server.put(att); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			link, sandbox string
			want          bool
		}{
			{"rail.5", "gone1", false},
			{"rail.5", "gone2", false},
			{"rail.6", "gone1", true},
			{"rail.6", "runs", false},
			{"rail.7", "gone1", true},
		} {
			if got := w.server.inUse(tt.link, tt.sandbox); got != tt.want {
				t.Errorf("%s without %s: in use %t, want %t", tt.link, tt.sandbox, got, tt.want)
			}
		}
	})
}

// TestSweep takes links of ours away whose record is lost, also where the pod has put
// into their group what the kernel does not delete.
func TestSweep(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		links := func() any { return w.snapshot(s)["pod"].(map[string]any)["links"] }
		before := links()
		w.ok(s, cnicall.Add)
		w.loseRecords()
		w.must(s.client, rtnl.LinkSet{Index: 1, Group: new(attach.Group)})
		w.ok(s, cnicall.Del)
		w.must(s.client, rtnl.LinkSet{Index: 1, Group: new(0)})
		if diff := cmp.Diff(before, links()); diff != "" {
			t.Errorf("links of the pod (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
	})
}

// TestForeignStays has the plugin of another fail that is to take away an interface
// with addresses of ours: they are free once the interface is gone, or the namespace.
func TestForeignStays(t *testing.T) {
	t.Parallel()
	notThere := fmt.Errorf("plugin ovs: %w", delegate.ErrNotThere)
	for _, tt := range []struct {
		name  string
		fails map[string]error
		words []string
		mend  func(w *world, s *box)
	}{
		{
			name: "DEL fails", fails: map[string]error{"DEL ovs": errTheirs()}, words: []string{"gpu2", "no route to the datastore"},
			mend: func(w *world, _ *box) { w.delegate.fail = nil },
		},
		{
			name: "the plugin is gone, and then the namespace", fails: map[string]error{"DEL ovs": notThere}, words: []string{"gpu2", notThere.Error()},
			mend: func(_ *world, s *box) { s.end() },
		},
		{
			name: "ADD fails, too", fails: map[string]error{"ADD ovs": errors.New("half"), "DEL ovs": errTheirs()}, words: []string{"gpu2", "no route to the datastore"},
			mend: func(w *world, _ *box) { w.delegate.fail = nil },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.cluster.nad("gpu2", `{"cniVersion":"0.3.1","name":"gpu2","type":"ovs","ipam":{"type":"spiderpool","default_ipv4_ippool":["gpu2"]}}`)
				w.cluster.pod("two", map[string]string{cniv1.AnnotationNetworks: "gpu1,gpu2"})
				s := w.sandbox("box1", "two")
				w.delegate.during = func(_ context.Context, call string) error {
					if call != "ADD ovs" {
						return nil
					}
					return errors.Join(w.node.Do(rtnl.LinkAdd{Name: "net2", Kind: "macvlan", Mode: "bridge", Parent: 111, NetNS: int(s.file.Fd()), Index: 50, Up: true})...)
				}
				verb := cnicall.Add
				if tt.fails["ADD ovs"] == nil {
					w.ok(s, cnicall.Add)
					verb = cnicall.Del
				}
				w.delegate.fail = tt.fails
				for range 2 {
					if err := w.call(s, verb); err == nil || !strings.Contains(err.Msg, tt.words[0]) || !strings.Contains(err.Msg, tt.words[1]) {
						t.Errorf("%s: %v, want %q in it", verb, err, tt.words)
					}
					if w.addresses.held() != 1 {
						t.Errorf("%s: %d sandboxes with addresses, want box1: net2 is there", verb, w.addresses.held())
					}
					verb = cnicall.Del // tries again
				}
				tt.mend(w, s)
				w.ok(s, cnicall.Del)
				w.checkNothingLeft()
			})
		})
	}
}
