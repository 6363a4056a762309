package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"railhead/internal/agent/address"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/netns"
)

// nodeLife is one life of a node's agent as a process: the test program started
// once more, with this as JSON in an environment variable.
type nodeLife struct {
	Kubeconfig string
	Node       string
	BootID     string
	Dir        string // of its journal
	Namespaces string // directory with a file for the network namespace of each pod
	KillPoint  KillPoint
}

const nodeLifeEnv = "RAILHEAD_TEST_AGENT"

// order is what the process is told, as a line of JSON.
type order struct {
	ID       int
	Release  bool // otherwise assign
	Key      holder.Key
	Pod      types.NamespacedName
	Sequence uint64
	NICs     []holder.NIC
	NetNS    string        // file of the pod's network namespace
	Within   time.Duration // how long the pod may wait for addresses
}

// answer is what it answers, in no order.
type answer struct {
	ID         int
	Ready      bool // not an answer: pods can be given addresses now
	Error      string
	Assignment holder.Assignment
}

// BecomeAgent replaces the test program by a node's agent if it was started as
// one. Call it first in TestMain.
func BecomeAgent() {
	text := os.Getenv(nodeLifeEnv)
	if text == "" {
		return
	}
	var life nodeLife
	err := json.Unmarshal([]byte(text), &life)
	if err == nil {
		err = life.live(context.Background())
	}
	fmt.Fprintf(os.Stderr, "agent of %s: %v\n", life.Node, err)
	os.Exit(1)
}

// live is a life that ends with its standard input, if it was not ended before.
func (l *nodeLife) live(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		return err
	}
	point := &selfKiller{KillPoint: l.KillPoint}
	config.Wrap(point.around)
	disk, err := journal.OS(l.Dir)
	if err != nil {
		return err
	}
	service, err := address.New(address.Config{
		NodeName: l.Node, Kubernetes: config, Dir: l.Dir, Disk: killingDisk{disk, point}, BootID: l.BootID, InUse: l.inUse,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	go func() {
		l.obey(ctx, service)
		cancel()
	}()
	return <-ended
}

// inUse is what is in the namespaces of pods.
func (l *nodeLife) inUse() (map[netip.Addr]string, error) {
	entries, err := os.ReadDir(l.Namespaces)
	if err != nil {
		return nil, err
	}
	all := map[netip.Addr]string{}
	for _, entry := range entries {
		addresses, err := addressesIn(filepath.Join(l.Namespaces, entry.Name()))
		if os.IsNotExist(err) {
			continue // it ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			all[a] = entry.Name()
		}
	}
	return all, nil
}

// obey does what it is told until it is told no more.
func (l *nodeLife) obey(ctx context.Context, service *address.Service) {
	var mu sync.Mutex
	encoder := json.NewEncoder(os.Stdout)
	say := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		_ = encoder.Encode(a) // who does not listen is gone
	}
	if err := service.AwaitReady(ctx); err != nil {
		return
	}
	say(answer{Ready: true})
	orders := json.NewDecoder(os.Stdin)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return
		}
		go func() {
			a, err := o.do(ctx, service)
			if err != nil {
				a.Error = err.Error()
			}
			say(a)
		}()
	}
}

// do is what a CNI plugin does: it gives a pod's namespace its addresses once
// they are assigned, and takes them out of it before they are released.
func (o *order) do(ctx context.Context, service *address.Service) (answer, error) {
	a := answer{ID: o.ID}
	if o.Release {
		if err := setAddresses(o.NetNS, nil); err != nil {
			return a, err
		}
		return a, service.Release(ctx, o.Key, o.Sequence, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	var err error
	a.Assignment, err = service.Assign(ctx, holder.Request{Key: o.Key, Pod: o.Pod, NICs: o.NICs})
	if err != nil {
		return a, err
	}
	return a, setAddresses(o.NetNS, a.Assignment.Addresses)
}

// addressesIn are the addresses that somebody set in a network namespace.
func addressesIn(path string) ([]netip.Addr, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var all []netip.Addr
	err = ns.Do(func() error {
		list, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
		for _, a := range list {
			if address, ok := netip.AddrFromSlice(a.IP); ok && !address.Unmap().IsLoopback() && !address.IsLinkLocalUnicast() {
				all = append(all, address.Unmap())
			}
		}
		return err
	})
	return all, err
}

// setAddresses gives a network namespace these addresses and no others, on its
// loopback interface.
func setAddresses(path string, wanted []holder.Assigned) error {
	before, err := addressesIn(path)
	if err != nil {
		return err
	}
	ns, err := netns.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		for _, a := range before {
			if err := netlink.AddrDel(lo, hostAddress(a)); err != nil {
				return fmt.Errorf("take %s out of %s: %w", a, path, err)
			}
		}
		for _, w := range wanted {
			if err := netlink.AddrAdd(lo, hostAddress(w.Prefix.Addr())); err != nil {
				return fmt.Errorf("give %s to %s: %w", w.Prefix, path, err)
			}
		}
		return nil
	})
}

func hostAddress(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: netlink.NewIPNet(a.AsSlice())}
}
