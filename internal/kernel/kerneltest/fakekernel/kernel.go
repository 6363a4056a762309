// Package fakekernel answers netlink requests as a kernel would, from plain
// facts: links and addresses (rtnetlink), RDMA devices with their ports
// (NETLINK_RDMA) and link settings (ethtool). It plays the hardware that a test
// or a simulation does not have.
//
// It knows the requests that the clients in internal/kernel make to learn what
// there is, refuses all others as unsupported, changes nothing by itself and
// sends no events. Files of sysfs are not its business.
package fakekernel

import (
	"errors"
	"slices"
	"sync"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// Facts is what a Kernel knows, in the words of the clients that ask.
type Facts struct {
	System    *rdmanl.System  // nil for a kernel without RDMA
	RDMA      []rdmanl.Device // with their ports
	Links     []rtnl.Link
	Addresses []rtnl.Address
	Settings  map[int]ethtool.LinkSettings // by link index; a link without has no ethtool
}

// Request is a kind of request, under the kernel's name for it.
type Request string

// The requests that a Kernel answers.
const (
	GetLink      Request = "RTM_GETLINK"
	GetAddress   Request = "RTM_GETADDR"
	GetSystem    Request = "RDMA_NLDEV_CMD_SYS_GET"
	GetDevice    Request = "RDMA_NLDEV_CMD_GET"
	GetPort      Request = "RDMA_NLDEV_CMD_PORT_GET"
	GetLinkModes Request = "ETHTOOL_MSG_LINKMODES_GET"
	GetLinkInfo  Request = "ETHTOOL_MSG_LINKINFO_GET"
	GetLinkState Request = "ETHTOOL_MSG_LINKSTATE_GET"
	GetFeatures  Request = "ETHTOOL_MSG_FEATURES_GET"

	getFamily     Request = "CTRL_CMD_GETFAMILY"
	anyOtherThing Request = ""
)

// Kernel answers requests. It is safe for concurrent use.
type Kernel struct {
	mu       sync.Mutex
	facts    Facts
	answers  map[string][]netlink.Message // to requests made since the facts last changed
	refusals map[Request]refusal
	torn     map[Request]int // how many more dumps are interrupted
	asked    map[Request]int
}

// refusal is an error that answers a kind of request.
type refusal struct {
	errno   unix.Errno
	objects []int // indexes of links or RDMA devices; none for all
}

// New returns a Kernel with these facts.
func New(facts Facts) *Kernel {
	return &Kernel{
		facts:    facts,
		answers:  map[string][]netlink.Message{},
		refusals: map[Request]refusal{},
		torn:     map[Request]int{},
		asked:    map[Request]int{},
	}
}

// Change changes the facts. Slices and maps in them belong to the Kernel.
func (k *Kernel) Change(change func(*Facts)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.facts)
	clear(k.answers)
}

// Refuse answers a kind of request with an error number from now on, 0 for no
// longer; where objects are given, the indexes of links or RDMA devices, only
// requests about one of them. A dump comes to its end at the first of them.
func (k *Kernel) Refuse(r Request, errno unix.Errno, objects ...int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusals[r] = refusal{errno: errno, objects: objects}
	clear(k.answers)
}

// Interrupt marks the next dumps of a kind as interrupted by a change.
func (k *Kernel) Interrupt(r Request, times int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.torn[r] = times
}

// Asked returns how many requests of a kind were made.
func (k *Kernel) Asked(r Request) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked[r]
}

// Links returns a client of the Kernel.
func (k *Kernel) Links() *rtnl.Client { return rtnl.New(k.dial(k.route)) }

// RDMA returns a client of the Kernel.
func (k *Kernel) RDMA() *rdmanl.Client { return rdmanl.New(k.dial(k.rdma)) }

// Ethtool returns a client of the Kernel, without what goes by ioctl.
func (k *Kernel) Ethtool() (*ethtool.Client, error) {
	conn := genetlink.NewConn(k.dial(k.generic))
	c, err := ethtool.New(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// question is a request as a protocol understood it.
type question struct {
	request Request
	object  int // index of a link or RDMA device; 0 or all where about none
	about   bool
	dump    bool
}

// answer is what a protocol says to a question: the bodies of messages of a
// type, each about an object.
type answer struct {
	typ     netlink.HeaderType
	objects []int
	bodies  [][]byte
	errno   unix.Errno
}

func (a *answer) add(object int, body []byte) {
	a.objects = append(a.objects, object)
	a.bodies = append(a.bodies, body)
}

// protocol understands requests of one netlink family, and answers them.
type protocol func(netlink.Message) (question, func() answer)

// ask answers a request.
func (k *Kernel) ask(m netlink.Message, p protocol) []netlink.Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	q, answer := p(m)
	q.dump = m.Header.Flags&netlink.Dump == netlink.Dump
	k.asked[q.request]++
	key := string(append([]byte{byte(m.Header.Type), byte(m.Header.Type >> 8), byte(m.Header.Flags >> 8)}, m.Data...))
	messages, ok := k.answers[key]
	if !ok {
		messages = k.assemble(q, k.refuse(q, answer()))
		k.answers[key] = messages
	}
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].Header.Sequence, messages[i].Header.PID = m.Header.Sequence, m.Header.PID
	}
	if q.dump && k.torn[q.request] > 0 {
		k.torn[q.request]--
		for i := range messages {
			messages[i].Header.Flags |= netlink.DumpInterrupted
		}
	}
	return messages
}

// refuse cuts an answer off where a refusal says so.
func (k *Kernel) refuse(q question, a answer) answer {
	r := k.refusals[q.request]
	switch {
	case r.errno == 0:
	case len(r.objects) == 0, q.about && slices.Contains(r.objects, q.object):
		return answer{errno: r.errno}
	case q.dump && !q.about:
		if i := slices.IndexFunc(a.objects, func(o int) bool { return slices.Contains(r.objects, o) }); i >= 0 {
			a.bodies, a.errno = a.bodies[:i], r.errno
		}
	}
	return a
}

// assemble makes messages of an answer, as the kernel does for a dump or for a
// request about one object.
func (k *Kernel) assemble(q question, a answer) []netlink.Message {
	var messages []netlink.Message
	for _, body := range a.bodies {
		messages = append(messages, netlink.Message{Header: netlink.Header{Type: a.typ}, Data: body})
	}
	switch {
	case q.dump:
		messages = append(messages, ending(netlink.Done, a.errno))
		for i := range messages {
			messages[i].Header.Flags |= netlink.Multi
		}
	case a.errno != 0:
		messages = []netlink.Message{ending(netlink.Error, a.errno)}
	}
	return messages
}

// ending is the message that ends a dump or refuses a request.
func ending(typ netlink.HeaderType, errno unix.Errno) netlink.Message {
	const requestHeader = unix.SizeofNlMsghdr // of which an error has a copy
	body := make([]byte, 4+requestHeader)
	putUint32(body, uint32(-int32(errno)))
	return netlink.Message{Header: netlink.Header{Type: typ}, Data: body}
}
