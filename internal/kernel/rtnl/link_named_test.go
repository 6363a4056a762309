package rtnl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// TestLinksByName wants what LinkByName says of each, in more pieces than one,
// and the client to be of use afterwards.
func TestLinksByName(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c := dialLive(t)
		var names []string
		for i := range 2*namesAtOnce + 1 {
			name := fmt.Sprintf("br%d", i)
			if i%3 > 0 {
				if err := errors.Join(c.Do(LinkAdd{Name: name, Kind: "bridge"})...); err != nil {
					t.Fatal(err)
				}
			}
			names = append(names, name)
		}
		got, err := c.LinksByName(append(names, "", "lo", "a-name-that-is-longer-than-links-have")...)
		if err == nil || !strings.Contains(err.Error(), "want 1 to 127") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one of the empty name alone", err)
		}
		want := map[string]Link{}
		for _, name := range append(names, "lo") {
			l, err := c.LinkByName(name)
			if err == nil {
				want[name] = l
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(want) != 1+22 {
			t.Errorf("%d links are there", len(want))
		}
	})
}

// TestLinksByNameElsewhere wants the same over a connection of somebody else's.
func TestLinksByNameElsewhere(t *testing.T) {
	t.Parallel()
	asked := func(name string) exchange {
		request, err := nameRequest(name)
		if err != nil {
			t.Fatal(err)
		}
		return exchange{typ: unix.RTM_GETLINK, flags: netlink.Request, body: request, answer: []netlink.Message{linkMessage(7, name)}}
	}
	there, gone, secret := asked("eth0"), asked("eth1"), asked("eth2")
	gone.errno, secret.errno = unix.ENODEV, unix.EPERM
	c := serve(t, there, gone, secret)
	got, err := c.LinksByName("eth0", "eth1", "eth2")
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that of eth2 alone", err)
	}
	if len(got) != 1 || got["eth0"].Index != 7 {
		t.Errorf("got %+v", got)
	}
}
