package probe

import (
	"context"
	"errors"
	"strings"
	"testing"

	"railhead/internal/kernel/kerneltest"
)

// TestAnnounce reads announcements as any other host does.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		target := l.rail(1, "10.1.0.2/24", "fd01::2/64")
		seen := make(chan sighting, 16)
		l.answer(1, func(frame []byte) []byte {
			if s, ok := decode(frame); ok && !s.probe {
				seen <- s
			}
			return nil
		})
		gone := target
		gone.Index = 4711
		ipoib := target
		ipoib.MAC = make([]byte, 20)
		err := l.prober.Announce(t.Context(), int(l.pod.Fd()), []Target{gone, ipoib, target})
		if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "net1 (rail 1, rail1): announce fd01::2: ") {
			t.Errorf("error %v, want two of the link that is not there", err)
		}
		for _, a := range target.Addresses {
			if want, got := (sighting{addr: a.Addr, mac: [macSize]byte(target.MAC)}), <-seen; got != want {
				t.Errorf("%v, want %v", got, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.prober.Announce(ctx, int(l.pod.Fd()), []Target{target}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
	})
}
