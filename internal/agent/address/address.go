// Package address gives the pods of one node their addresses: it keeps the
// node's lease up to date, says which of its addresses a pod has, tells others
// of it in SpiderEndpoints, and takes back what pods left behind.
//
// What a node may use, and what is on its disk, [holder.Holder] knows; this
// package carries its words to the API server and back. On the way of a
// starting pod nothing is asked of the API server, unless the node's addresses
// have run out or the pod keeps its addresses over its lives. It never decides
// which pools a pod takes addresses of, and touches no interface.
package address

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"railhead/internal/attribution"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/node"
)

// Config says of which node the service is, and what it may ask.
type Config struct {
	NodeName   string                // of its Node object
	Node       node.Node             // whose boot it is, and whose network namespaces are looked into
	Kubernetes *rest.Config          // how to reach the API server
	Dir        string                // of the journal, which is made where it is not there: /var/lib/railhead/addresses
	Pods       attribution.PodSource // knows what made a pod; nil: endpoints say "Pod"
	Logger     *slog.Logger          // nil: nothing is logged

	// What follows is for tests, and who has another kernel or disk. BootID and
	// InUse together make Node unnecessary.
	Disk   journal.Disk                          // nil: files in Dir
	BootID string                                // empty: that of Node
	InUse  func() (map[netip.Addr]string, error) // addresses in the network namespaces of pods, by where they are; nil: of Node

	// Processes are those of pods, by the UID of the pod; nil: those of Node, or
	// without it none.
	Processes func() (map[types.UID][]int, error)
}

// Service gives the node's pods their addresses. It is made by [New] and run
// once. Its methods are safe for concurrent use.
type Service struct {
	config  Config
	log     *slog.Logger
	metrics *metrics
	client  *client
	link    link
	syncer  syncer
	publish *publisher

	opened chan struct{}  // closed once holder is set
	holder *holder.Holder // never changes after that
	ended  chan struct{}  // closed once Run ends

	mu      sync.Mutex
	opening error                       // why holder is not set yet
	looking error                       // why it is not known which addresses are in use
	waiting map[holder.Key]func() error // what those pods wait for that are being given addresses

	using sync.RWMutex // held for reading while the journal is used
}

// New returns a Service of a node. It asks and reads nothing before it is run.
// The error is about config.
func New(config Config) (*Service, error) {
	switch {
	case config.NodeName == "":
		return nil, errors.New("name of the node is empty, want that of its Node object")
	case config.Kubernetes == nil:
		return nil, errors.New("no access to Kubernetes, which addresses are granted by")
	case config.Node == nil && (config.InUse == nil || config.BootID == ""):
		return nil, errors.New("no kernel to ask which boot of the node this is, and which addresses are in use")
	case config.Dir == "" && config.Disk == nil:
		return nil, errors.New("directory of the journal of addresses is empty, want one on a disk, such as /var/lib/railhead/addresses")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	config.look()
	c, err := newClient(config.Kubernetes, config.NodeName)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	m, ended := newMetrics(), make(chan struct{})
	return &Service{
		config: config, log: config.Logger, metrics: m, client: c,
		link: newLink(config.Logger), syncer: newSyncer(),
		publish: newPublisher(c, config.Pods, config.Logger, m, ended),
		opened:  make(chan struct{}), ended: ended,
		waiting: map[holder.Key]func() error{},
	}, nil
}

// look has the kernel asked for what is not asked elsewhere.
func (c *Config) look() {
	n := c.Node
	if c.InUse == nil {
		c.InUse = func() (map[netip.Addr]string, error) { return inUse(n) }
	}
	switch {
	case c.Processes == nil && n != nil:
		c.Processes = func() (map[types.UID][]int, error) { return podProcesses(n.FS()) }
	case c.Processes == nil:
		c.Processes = func() (map[types.UID][]int, error) { return nil, nil }
	}
}

// Run gives addresses until ctx ends, and returns its error; another one only
// where the node's object was replaced by one of its name, so that all that is
// known of the node is void. What it cannot do now, it tries again:
// [Service.Ready] says why it cannot.
func (s *Service) Run(ctx context.Context) error {
	defer s.publish.start()()
	uid, release, err := s.open(ctx)
	if err != nil {
		s.end(func() {})
		return err
	}
	defer s.end(release)
	isLost := s.holder.Ready() != nil
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.follow(ctx) })
	group.Go(func() error { return s.syncer.run(ctx, s.holder, countedLease{s.client, s.metrics, &s.link}, s.log) })
	group.Go(func() error { return s.publish.run(ctx) })
	group.Go(func() error {
		if err := s.settle(ctx, isLost); err != nil {
			return err
		}
		c := collector{service: s, gone: map[holder.Key]time.Time{}}
		return c.run(ctx, uid)
	})
	return group.Wait()
}

// end wakes who waits, and lets go of the journal. Nobody uses it any more by
// then, nor does later: another agent may have it.
func (s *Service) end(release func()) {
	close(s.ended)
	s.using.Lock()
	defer s.using.Unlock()
	release()
}

// hasEnded tells whether Run has ended.
func (s *Service) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// errEnded says that Run has ended.
var errEnded = errors.New("the agent has ended")

// Assignments returns what pods have, by the order in which it was given; nil
// before the journal was read.
func (s *Service) Assignments() []holder.Assignment {
	if !s.isOpen() {
		return nil
	}
	return s.holder.Assignments()
}
