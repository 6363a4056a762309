package fakekernel

import (
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// objectKind is what requests can be about.
type objectKind uint8

const (
	nothing objectKind = iota
	netLink
	rdmaDevice
	healthReporter
)

// question is a request as a protocol understood it.
type question struct {
	request Request
	answer  func(*Kernel, question) answer                // called with the Kernel's lock
	locate  func(*Kernel, question) (object int, ok bool) // likewise; nil where the request has the number of what it is about
	kind    objectKind
	object  int    // index of a link or RDMA device, place of a reporter; 0 or all where about none
	about   bool   // about one object
	name    string // of a link
	number  int    // of a port or family
	flags   uint32
	body    []byte // attributes of the request
	dump    bool
	changes bool // it changes facts
}

// protocol understands requests of one netlink family.
type protocol func(netlink.Message) question

func unsupported() question {
	return question{request: anyOtherThing, answer: always(unix.EOPNOTSUPP)}
}

func always(errno unix.Errno) func(*Kernel, question) answer {
	return func(*Kernel, question) answer { return answer{errno: errno} }
}

// body returns the body of a message, as it is now. It is called without the
// Kernel's lock, and nobody writes what it returned.
type body func() []byte

// answer is what a protocol says to a question: the bodies of messages of a
// type, each about an object.
type answer struct {
	typ     netlink.HeaderType
	objects []int
	bodies  []body
	errno   unix.Errno
	multi   bool // ends as a dump does
}

// add adds a message that stays the same.
func (a *answer) add(object int, b []byte) { a.addLive(object, func() []byte { return b }) }

// addLive adds a message that is made for each request.
func (a *answer) addLive(object int, b body) {
	a.objects = append(a.objects, object)
	a.bodies = append(a.bodies, b)
}

// reply is an answer as it is kept for the same request.
type reply struct {
	answer
	kind  objectKind
	flags netlink.HeaderFlags
	last  []byte // the body of what ends or refuses
	end   netlink.HeaderType
}

// ask answers a request with messages, which it appends.
func (k *Kernel) ask(messages []netlink.Message, m netlink.Message, q question) []netlink.Message {
	r, torn := k.find(m, q)
	header := netlink.Header{Type: r.typ, Flags: r.flags, Sequence: m.Header.Sequence, PID: m.Header.PID}
	if torn {
		header.Flags |= netlink.DumpInterrupted
	}
	for _, b := range r.bodies {
		messages = append(messages, netlink.Message{Header: header, Data: b()})
	}
	if r.end != 0 {
		header.Type = r.end
		messages = append(messages, netlink.Message{Header: header, Data: r.last})
	}
	return messages
}

// find returns the reply to a request, and whether it is to be interrupted.
func (k *Kernel) find(m netlink.Message, q question) (r reply, torn bool) {
	var room [128]byte
	key := append(room[:0], byte(m.Header.Type), byte(m.Header.Type>>8), byte(m.Header.Flags>>8))
	key = append(key, m.Data...)
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.replies[string(key)]
	if !ok {
		r = assemble(q, k.decide(q))
		if !q.changes {
			k.replies[string(key)] = r
		}
	}
	if q.dump && k.torn[q.request] > 0 {
		k.torn[q.request]--
		torn = true
	}
	return r, torn
}

// decide answers a question, or refuses to.
func (k *Kernel) decide(q question) answer {
	if errno := k.refused(q); errno != 0 {
		return answer{errno: errno}
	}
	return k.cutOff(q, q.answer(k, q))
}

// assemble makes a reply of an answer, as the kernel does for a dump or for a
// request about one object.
func assemble(q question, a answer) reply {
	r := reply{answer: a, kind: q.kind}
	switch {
	case q.dump, a.multi && a.errno == 0:
		r.flags, r.end, r.last = netlink.Multi, netlink.Done, ending(a.errno)
	case a.errno != 0:
		r.bodies, r.end, r.last = nil, netlink.Error, ending(a.errno)
	}
	if q.about {
		r.objects = append(slices.Clip(r.objects), q.object)
	}
	return r
}

// ending is the body of a message that ends a dump or refuses a request.
func ending(errno unix.Errno) []byte {
	const requestHeader = unix.SizeofNlMsghdr // of which an error has a copy
	b := make([]byte, 4+requestHeader)
	putUint32(b, uint32(-int32(errno)))
	return b
}
