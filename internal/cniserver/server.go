// Package cniserver does what the container runtime asks by CNI for the pods of
// a node: it says which networks a pod gets, has them addressed, attached,
// checked on the wire and recorded, and takes all of that away again.
//
// Calls come in two kinds. By our own network (railhead-cni) the whole pod is
// served at once, the cluster's own network included. Below another runtime of
// networks, such as Multus, calls are of one plugin for one interface
// (spiderpool, coordinator, ifacer); what they need of one another is kept here.
//
// DEL needs the records of this node and its kernel, and nobody else.
package cniserver

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/npwg"
	"railhead/internal/policy"
)

// Addresses gives pods their addresses. It is address.Service.
type Addresses interface {
	Assign(ctx context.Context, request holder.Request) (holder.Assignment, error)
	Waiting(key holder.Key) error // what a pod waits for in Assign, nil if it does not
	Release(ctx context.Context, key holder.Key, sequence uint64, quarantine map[netip.Addr]string) error
	Vouch(key holder.Key)
	Ready() error
}

// Cluster is what the API server knows, from memory. It is cluster.Cache.
type Cluster interface {
	Pods
	Networks
	Knowledge
}

// Knowledge says how much is known.
type Knowledge interface {
	Ready() error   // what is not known at all; nil if all is
	Current() error // why pods may be known from before this run alone; nil if they are not
}

// Pods knows the pods of this node, and tells of them.
type Pods interface {
	Pod(ctx context.Context, namespace, name, uid string) (*metav1.PartialObjectMetadata, error)
	Namespace(ctx context.Context, name string) (*metav1.ObjectMeta, error)
	Above(ctx context.Context, pod *metav1.PartialObjectMetadata) ([]policy.Application, error)
	PatchPod(ctx context.Context, namespace, name string, patch []byte) error
	Event(ctx context.Context, pod *metav1.PartialObjectMetadata, reason, text string) error
}

// Networks knows what networks and the node are.
type Networks interface {
	Catalog() *policy.Catalog
	NAD(namespace, name string) (*cniv1.NetworkAttachmentDefinition, error)
	Coordinator() (v2beta1.CoordinatorSpec, v2beta1.CoordinatorStatus, error)
	Node() (metav1.ObjectMeta, []netip.Addr)
}

// Delegate runs plugins of others. It is delegate.Delegate.
type Delegate interface {
	Add(ctx context.Context, c delegate.Call) (*types100.Result, error)
	Del(ctx context.Context, c delegate.Call) error
	Check(ctx context.Context, c delegate.Call) error
	Status(ctx context.Context, c delegate.Call) error
	GC(ctx context.Context, c delegate.Call, valid []types.GCAttachment) error
}

// Config is what a Server works with. What may be nil is said to be.
type Config struct {
	NodeName  string
	Addresses Addresses
	Cluster   Cluster
	Attacher  *attach.Attacher
	Records   *record.Store
	Delegate  Delegate

	// ClusterNetwork loads the cluster's own network, as our configuration names
	// it: a file in the node's directory of configurations, and its name. It is
	// cniinstall.ClusterNetwork.Load.
	ClusterNetwork func(file, name string) (*libcni.NetworkConfigList, error)
	// ReadNAD finds a NetworkAttachmentDefinition that the node may not know of yet. It
	// is cluster.Cache.ReadNAD; nil: Cluster.NAD, which asks nobody.
	ReadNAD func(ctx context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error)
	// Files are the node's CNI configurations, for networks that have theirs there.
	// It is delegate.Delegate.Files; nil: there are none.
	Files func() ([]delegate.File, error)

	// Dial connects to the kernel in a network namespace; tests put something in
	// between. Nil: rtnl.Dial.
	Dial func(*rtnl.Config) (*rtnl.Client, error)
	// BootID is that of the running kernel: what another one had is gone.
	BootID string
	// NetNS is the path by which this process reaches a network namespace that the
	// runtime has at a path; nil: the same one. The error is that this cannot be told.
	NetNS func(path string) (string, error)
	// Allocated are the devices that the kubelet allocated for a pod, by resource;
	// nil: none are known.
	Allocated func(podUID string) map[string][]string
	// DeviceInfo is npwg.DeviceInfoFolder as this process sees it; "": nobody
	// describes devices.
	DeviceInfo string
	// Selection is how networks are selected. Its Interface is the runtime's.
	Selection npwg.Config

	Logger *slog.Logger     // nil: nothing is logged
	Now    func() time.Time // nil: time.Now
}

// Server answers CNI calls. It is made by New and run once; its methods are safe
// for concurrent use.
type Server struct {
	config    Config
	log       *slog.Logger
	metrics   *metrics
	sandboxes *sandboxes
	publisher *publisher
	watcher   *probe.Watcher
	prober    probe.Prober

	// background is what goes on: calls, and what follows their answers.
	background works
	// started is closed once it is known what an earlier run left: no call is served before.
	started chan struct{}

	// unsettled is how many sandboxes of an earlier run are still to be looked at or put right.
	unsettled atomic.Int64

	mu      sync.Mutex
	running map[string]*attempt                // by sandbox: attachments that are being made
	diskErr error                              // of the last write of a record
	proven  map[grantedAddress]bool            // nobody else had them
	claimed map[string]map[string][]netip.Addr // by sandbox and parent
	pods    map[string]string                  // by sandbox with a record: UID of its pod
	gone    map[string][]string                // by sandbox: interfaces without addresses, which its record still has
	told    map[string]time.Time               // Events that were made, and when
}

// New returns a Server. It serves calls once it runs. The error is about config.
func New(config Config) (*Server, error) {
	var errs []error
	for _, need := range []struct {
		name string
		is   bool
	}{
		{"NodeName", config.NodeName != ""},
		{"Addresses", config.Addresses != nil},
		{"Cluster", config.Cluster != nil},
		{"Attacher", config.Attacher != nil},
		{"Records", config.Records != nil},
		{"Delegate", config.Delegate != nil},
		{"ClusterNetwork", config.ClusterNetwork != nil},
		{"BootID", config.BootID != ""},
	} {
		if !need.is {
			errs = append(errs, errors.New("config of the CNI server: "+need.name+": missing"))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Dial == nil {
		config.Dial = rtnl.Dial
	}
	if config.NetNS == nil {
		config.NetNS = func(path string) (string, error) { return path, nil }
	}
	if config.ReadNAD == nil {
		config.ReadNAD = func(_ context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
			return config.Cluster.NAD(namespace, name)
		}
	}
	s := &Server{
		config: config, log: config.Logger, sandboxes: newSandboxes(), started: make(chan struct{}),
		running: map[string]*attempt{}, proven: map[grantedAddress]bool{}, claimed: map[string]map[string][]netip.Addr{}, pods: map[string]string{}, gone: map[string][]string{}, told: map[string]time.Time{},
	}
	for _, att := range config.Records.All() {
		s.pods[att.ContainerID] = att.PodUID
		if att.Plan != nil && att.BootID == config.BootID {
			config.Attacher.Remember(att.Plan)
		}
	}
	s.metrics = newMetrics(s.attachments, func() float64 { return float64(s.unsettled.Load()) }, s.needs)
	s.publisher = newPublisher(config.Cluster, config.Logger, config.Now, s.metrics.patches.Inc)
	s.watcher = probe.NewWatcher(0, s.conflict, s.deaf)
	return s, nil
}

// attachments is how many sandboxes there are: below another runtime of networks
// one may have several records.
func (s *Server) attachments() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sandboxes := map[string]bool{}
	for id := range s.pods {
		sandboxes[sandboxOf(id)] = true
	}
	return float64(len(sandboxes))
}

// Collectors are the metrics of the server, for a registry.
func (s *Server) Collectors() []prometheus.Collector { return s.metrics.all() }
