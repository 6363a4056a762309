package cniserver

import (
	"testing"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/kernel/kerneltest"
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
