package inventory

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/kernel/uevent"
)

// nodeWithPod is a simulated node with one pod, whose namespace is told apart
// by a file in proc.
type nodeWithPod struct {
	host, pod *simNode
	open      int    // namespaces that are open
	view      string // of the pod's sysfs, which was opened last
}

// podFile is the namespace of the pod's process.
const podFile = "proc/77/ns/net"

// newNodeWithPod returns a node of a PF, and of a VF that is in the pod.
func newNodeWithPod(t *testing.T) *nodeWithPod {
	t.Helper()
	cards := simCards{pfs: 1, vfs: 1}
	n := &nodeWithPod{host: newSimNode(t, cards), pod: newSimNode(t, cards)}
	n.host.write(podFile, "")
	n.host.move(n.host.functions[1])
	n.pod.move(n.pod.functions[0])
	return n
}

func (n *nodeWithPod) FS() sysfs.FS                       { return sysfs.New(n.host.root) }
func (n *nodeWithPod) Own() node.NetNS                    { return simNetNS{simNode: n.host} }
func (n *nodeWithPod) Uevents() (*uevent.Listener, error) { return n.host.kernel.Uevents(), nil }
func (n *nodeWithPod) Monitor() (*rdmanl.Monitor, error)  { return n.host.kernel.Monitor() }

func (n *nodeWithPod) Open(path string) (node.NetNS, error) {
	id, err := netns.Stat(path)
	if err != nil {
		return nil, err
	}
	n.open++
	return simNetNS{simNode: n.pod, id: id, node: n}, nil
}

func (n *nodeWithPod) Subscribe(groups ...rtnl.Group) (*rtnl.Subscription, error) {
	return n.host.kernel.Subscribe(groups...), nil
}

// simNetNS is a namespace of a nodeWithPod.
type simNetNS struct {
	*simNode

	id   netns.ID
	node *nodeWithPod
}

func (s simNetNS) ID() netns.ID                      { return s.id }
func (s simNetNS) RDMA() (*rdmanl.Client, error)     { return s.kernel.RDMA(), nil }
func (s simNetNS) Links() (*rtnl.Client, error)      { return s.kernel.Links(), nil }
func (s simNetNS) Ethtool() (*ethtool.Client, error) { return s.kernel.Ethtool() }
func (s simNetNS) Devlink() (*devlink.Client, error) { return s.kernel.Devlink() }

// SysFS opens a view of sysfs that shows nothing as long as the namespace is
// open: it would be kept alive for all the time that reading takes.
func (s simNetNS) SysFS() (*os.File, error) {
	view, err := os.MkdirTemp(s.root, "view")
	if err != nil {
		return nil, err
	}
	s.node.view = view
	return os.Open(view)
}

func (s simNetNS) Close() error {
	s.node.open--
	view := s.node.view
	if s.node.view = ""; view == "" {
		return nil
	}
	return os.Symlink("../sys/class", view+"/class")
}

// TestReadSimulatedPod finds a VF in a pod of a node that is simulated as a
// whole, and closes what it opened there: the namespace before it reads files.
func TestReadSimulatedPod(t *testing.T) {
	t.Parallel()
	n := newNodeWithPod(t)
	r, err := NewReader(n)
	if err != nil {
		t.Fatal(err)
	}
	s := Join(r.Read(nil, Changes{}), Options{})
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if len(s.Problems) != 0 || n.open != 0 {
		t.Errorf("problems %v, and %d namespaces open", s.Problems, n.open)
	}
	id, err := netns.Stat(n.host.file(podFile))
	if err != nil {
		t.Fatal(err)
	}
	vf := n.host.functions[1]
	d, ok := s.Device(vf.id)
	if !ok || d.RDMA == nil || len(d.Netdevs) != 1 {
		t.Fatalf("the VF is %+v, want its RDMA device and netdev in the pod", d)
	}
	want := &NetNS{ID: id, Path: n.host.file(podFile)}
	if diff := cmp.Diff([]*NetNS{want, want}, []*NetNS{d.RDMA.NetNS, d.Netdevs[0].NetNS}); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if d.RDMA.Name != vf.rdma || d.Netdevs[0].Name != vf.netdev || d.RDMA.BoardID == "" { // which only sysfs has
		t.Errorf("the VF has %+v and %+v, want %s of some board and %s", d.RDMA, d.Netdevs[0], vf.rdma, vf.netdev)
	}
}

// TestWatchSimulatedNode hears of a VF that comes home from a pod.
func TestWatchSimulatedNode(t *testing.T) {
	t.Parallel()
	n := newNodeWithPod(t)
	w := watchedNode(t, n)
	vf := n.host.functions[1]
	n.pod.move(n.pod.functions[1])
	n.host.move(vf)
	n.host.kernel.SendUevent(uevent.Event{Action: "add", DevPath: "/" + vf.path + "/infiniband/" + vf.rdma, Subsystem: "infiniband"})
	awaitHome(t, w, vf)
}

// deaf is a node that says nothing by itself.
type deaf struct{ *nodeWithPod }

var errDeaf = errors.New("no events")

func (deaf) Uevents() (*uevent.Listener, error) { return nil, errDeaf }

func TestWatchDeafNode(t *testing.T) {
	t.Parallel()
	r, err := NewReader(deaf{newNodeWithPod(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := NewWatcher(r, Options{}).Run(t.Context()); !errors.Is(err, errDeaf) || errors.Is(err, fs.ErrClosed) {
		t.Errorf("error %v, want %v", err, errDeaf)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
