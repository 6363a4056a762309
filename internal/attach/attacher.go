package attach

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/nft"
	"railhead/internal/kernel/rtnl"
)

// Config says where an Attacher finds the kernel.
type Config struct {
	Proc string // where a procfs is mounted; default /proc
	Sys  string // where the node's sysfs is mounted; default /sys
	// Dial connects to the kernel in a network namespace; tests put something in
	// between. Default: rtnl.Dial.
	Dial func(*rtnl.Config) (*rtnl.Client, error)
}

// Attacher gives pods their interfaces and takes them away. It is safe for
// concurrent use for different pods.
//
// It needs CAP_NET_ADMIN and CAP_SYS_ADMIN on the node.
type Attacher struct {
	config Config
	home   *netns.NS // the node's
	node   *rtnl.Client

	shared keyed      // by name of a shared link
	rules  sync.Mutex // held while rules and routes of the node change

	mu    sync.Mutex
	users map[string]map[string]bool // of shared links and of the node's rules: container IDs, since this Attacher began
	away  []Former                   // netdevs of the node that pods have, in the order in which they went

	// mark and unmark are of package nft.
	mark   func(netnsFD int, table, dev string, mark, mask uint32) error
	unmark func(netnsFD int, table string) error

	// refuse is for tests: what of a stage is to fail, before it is done.
	refuse func(stage string) error
}

// try does a part of a stage, unless a test has that fail.
func (a *Attacher) try(stage string, do func() error) error {
	if a.refuse != nil {
		if err := a.refuse(stage); err != nil {
			return err
		}
	}
	return do()
}

// Done is what Apply did.
type Done struct {
	Interfaces []Made // as the Plan's
	Steps      []Step // in the order in which they were done
}

// Made is an interface as it is now.
type Made struct {
	Name      string
	Index     int // in the pod's namespace
	MAC       net.HardwareAddr
	MTU       int // bytes
	Addresses []netip.Prefix
}

// Step is a part of the work, and how long it took.
type Step struct {
	Name string
	Took time.Duration
}

// New returns an Attacher whose node is the calling thread's network namespace.
func New(config Config) (*Attacher, error) {
	if config.Proc == "" {
		config.Proc = "/proc"
	}
	if config.Sys == "" {
		config.Sys = "/sys"
	}
	if config.Dial == nil {
		config.Dial = rtnl.Dial
	}
	home, err := netns.Current()
	if err != nil {
		return nil, fmt.Errorf("the node's %w", err)
	}
	node, err := config.Dial(&rtnl.Config{NetNS: home.FD()})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("netlink on the node: %w", err), home.Close())
	}
	return &Attacher{
		config: config, home: home, node: node, users: map[string]map[string]bool{}, mark: nft.Mark, unmark: nft.Unmark,
	}, nil
}

// Close closes the Attacher's sockets. Nothing must be under way.
func (a *Attacher) Close() error { return errors.Join(a.node.Close(), a.home.Close()) }

// use notes that a pod stands on a shared link, or needs a rule of the node, and
// says whether that is news.
func (a *Attacher) use(name, containerID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users[name] == nil {
		a.users[name] = map[string]bool{}
	}
	before := a.users[name][containerID]
	a.users[name][containerID] = true
	return !before
}

// leave notes that a pod does so no more, and says whether another does that came
// since this Attacher began.
func (a *Attacher) leave(name, containerID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.users[name], containerID)
	if len(a.users[name]) > 0 {
		return true
	}
	delete(a.users, name)
	return false
}

// keyed is a lock for each of a few names.
type keyed struct {
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

// lock locks a name and returns what unlocks it.
func (k *keyed) lock(name string) func() {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*sync.Mutex{}
	}
	if k.locks[name] == nil {
		k.locks[name] = &sync.Mutex{}
	}
	l := k.locks[name]
	k.mu.Unlock()
	l.Lock()
	return l.Unlock
}
