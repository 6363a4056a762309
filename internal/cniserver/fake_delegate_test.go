package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"
	"testing"

	cnitypes "github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"railhead/internal/cniserver/delegate"
	"railhead/internal/kernel/rtnl"
)

// fakeDelegate runs plugins of others: calico makes eth0, all others do nothing.
type fakeDelegate struct {
	t       *testing.T
	missing bool // the cluster's own network

	mu      sync.Mutex
	calls   []string
	next    int
	fail    map[string]error            // by "ADD type"
	results map[string]*types100.Result // by type; else prevResult
	during  func(ctx context.Context, call string) error
}

func (f *fakeDelegate) note(ctx context.Context, verb string, c delegate.Call) error {
	call := verb + " " + c.Type
	f.mu.Lock()
	f.calls = append(f.calls, call+" "+c.IfName)
	err, during := f.fail[call], f.during
	f.mu.Unlock()
	if during != nil {
		err = errors.Join(err, during(ctx, call))
	}
	return err
}

func (f *fakeDelegate) Add(ctx context.Context, c delegate.Call) (*types100.Result, error) {
	var conf struct {
		PrevResult *types100.Result `json:"prevResult"`
	}
	if err := json.Unmarshal(c.Config, &conf); err != nil {
		return nil, err
	}
	if r := f.results[c.Type]; r != nil {
		return r, f.note(ctx, "ADD", c)
	}
	if c.Type != "calico" {
		if conf.PrevResult == nil {
			conf.PrevResult = &types100.Result{CNIVersion: "1.1.0"}
		}
		return conf.PrevResult, f.note(ctx, "ADD", c)
	}
	f.mu.Lock()
	f.next++
	n := f.next
	f.mu.Unlock()
	if err := calico(c, n); err != nil {
		return nil, err
	}
	address := netip.MustParsePrefix(fmt.Sprintf("10.233.119.%d/32", n))
	return &types100.Result{
		CNIVersion: "1.1.0", Interfaces: []*types100.Interface{{Name: fmt.Sprintf("cali%d", n)}, {Name: "eth0", Mac: "ca:39:52:fc:61:cd", Sandbox: c.NetNS}},
		IPs: []*types100.IPConfig{{Address: ipNet(address), Interface: new(1)}},
	}, f.note(ctx, "ADD", c)
}

// calico makes eth0 as Calico does.
func calico(c delegate.Call, n int) error {
	ns, err := os.Open(c.NetNS)
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	node, err := rtnl.Dial(nil)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	pod, err := rtnl.Dial(&rtnl.Config{NetNS: int(ns.Fd())})
	if err != nil {
		return err
	}
	defer func() { _ = pod.Close() }()
	gateway := netip.MustParsePrefix("169.254.1.1/32")
	return errors.Join(errors.Join(node.Do(
		rtnl.LinkAdd{Name: "eth0", Kind: "veth", Index: 3, NetNS: int(ns.Fd()), Up: true, MAC: macOf("ca:39:52:fc:61:cd"), Peer: rtnl.VethPeer{Name: fmt.Sprintf("cali%d", n), Index: 300 + n, MAC: macOf("ee:ee:ee:ee:ee:ee")}},
		rtnl.LinkSet{Index: 300 + n, Up: new(true)})...),
		errors.Join(pod.Do(
			rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 3, Prefix: netip.MustParsePrefix(fmt.Sprintf("10.233.119.%d/32", n))}},
			rtnl.RouteAdd{Route: rtnl.Route{Dst: gateway, LinkIndex: 3}},
			rtnl.RouteAdd{Route: rtnl.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), LinkIndex: 3, Gateway: gateway.Addr()}})...))
}

func (f *fakeDelegate) Del(ctx context.Context, c delegate.Call) error {
	if c.Type == "calico" && c.NetNS != "" {
		ns, err := os.Open(c.NetNS)
		if err != nil {
			return err
		}
		defer func() { _ = ns.Close() }()
		pod, err := rtnl.Dial(&rtnl.Config{NetNS: int(ns.Fd())})
		if err != nil {
			return err
		}
		defer func() { _ = pod.Close() }()
		if err := errors.Join(pod.Do(rtnl.LinkDelete{Name: "eth0"})...); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f.note(ctx, "DEL", c)
}

func (f *fakeDelegate) Check(ctx context.Context, c delegate.Call) error {
	return f.note(ctx, "CHECK", c)
}

func (f *fakeDelegate) Status(ctx context.Context, c delegate.Call) error {
	return f.note(ctx, "STATUS", c)
}

func (f *fakeDelegate) GC(ctx context.Context, c delegate.Call, _ []cnitypes.GCAttachment) error {
	return f.note(ctx, "GC", c)
}

// asked takes the calls that were made.
func (f *fakeDelegate) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// errTheirs is as a plugin of another says it.
func errTheirs() error { return cnitypes.NewError(57, "no route to the datastore", "") }
