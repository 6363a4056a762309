package rtnl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// comparable types whose insides cmp may not look at.
var ipTypes = cmpopts.EquateComparable(prefixType, addrType)

// exchange is a request that a test expects and the kernel's answer to it.
type exchange struct {
	typ    netlink.HeaderType
	flags  netlink.HeaderFlags
	body   []byte
	answer []netlink.Message
	errno  unix.Errno
}

const dumpFlags = netlink.Request | netlink.Dump

// serve returns a client whose kernel expects the exchanges in order.
func serve(t *testing.T, exchanges ...exchange) *Client {
	t.Helper()
	conn := nltest.Dial(func(requests []netlink.Message) ([]netlink.Message, error) {
		if len(requests) != 1 || len(exchanges) == 0 {
			t.Errorf("%d requests, %d more expected", len(requests), len(exchanges))
			return nil, os.ErrInvalid
		}
		got, want := requests[0], exchanges[0]
		exchanges = exchanges[1:]
		if got.Header.Type != want.typ || got.Header.Flags != want.flags || !bytes.Equal(got.Data, want.body) {
			t.Errorf("request type %d, flags %v, body\n% x\nwant type %d, flags %v, body\n% x",
				got.Header.Type, got.Header.Flags, got.Data, want.typ, want.flags, want.body)
		}
		return answer(got, want), nil
	})
	t.Cleanup(func() {
		if len(exchanges) != 0 {
			t.Errorf("%d requests were not made", len(exchanges))
		}
		_ = conn.Close()
	})
	return New(conn)
}

// answer completes the headers of an answer as the kernel does, and ends that
// to a dump.
func answer(request netlink.Message, e exchange) []netlink.Message {
	if e.errno != 0 {
		return []netlink.Message{refuse(request, e.errno)}
	}
	msgs := slices.Clone(e.answer)
	dump := request.Header.Flags&netlink.Dump == netlink.Dump
	if dump {
		msgs = append(msgs, message(netlink.Done, 0, make([]byte, 4)))
	}
	for i := range msgs {
		msgs[i].Header.Sequence, msgs[i].Header.PID = request.Header.Sequence, nltest.PID
		if dump {
			msgs[i].Header.Flags |= netlink.Multi
		}
	}
	return msgs
}

// dumpsIP returns the requests for a list for IPv4 and for IPv6.
func dumpsIP(typ netlink.HeaderType, size int) []exchange {
	v4 := exchange{typ: typ, flags: dumpFlags, body: make([]byte, size)}
	v6 := exchange{typ: typ, flags: dumpFlags, body: make([]byte, size)}
	v4.body[0], v6.body[0] = unix.AF_INET, unix.AF_INET6
	return []exchange{v4, v6}
}

// refuse returns an error with the explanation "because", as the kernel does:
// the number, the request, and attributes.
func refuse(request netlink.Message, errno unix.Errno) netlink.Message {
	b := words(uint32(-int32(errno)), request.Header.Length)
	b = append(b, make([]byte, unix.SizeofNlMsghdr-4)...)
	b = append(b, request.Data...)
	m := message(netlink.Error, netlink.AcknowledgeTLVs, append(b, text(1, "because")...))
	m.Header.Sequence, m.Header.PID = request.Header.Sequence, nltest.PID
	return m
}

// linkMessage returns an RTM_NEWLINK with a name.
func linkMessage(index int32, name string) netlink.Message {
	return message(unix.RTM_NEWLINK, 0, appendAttribute(linkBody(index), unix.IFLA_IFNAME, append([]byte(name), 0)))
}

// linkBody returns a struct ifinfomsg of an Ethernet link.
func linkBody(index int32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint16(b[2:], unix.ARPHRD_ETHER)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	return b
}

func TestLinksInterrupted(t *testing.T) {
	t.Parallel()
	request := exchange{typ: unix.RTM_GETLINK, flags: dumpFlags, body: linkRequest(0, extSkipStats)}
	torn := request
	torn.answer = []netlink.Message{linkMessage(1, "lo"), linkMessage(2, "eth0")}
	torn.answer[1].Header.Flags = netlink.DumpInterrupted
	whole := request
	whole.answer = []netlink.Message{linkMessage(1, "lo")}

	t.Run("once", func(t *testing.T) {
		t.Parallel()
		links, err := serve(t, torn, whole).Links()
		if err != nil {
			t.Fatal(err)
		}
		if len(links) != 1 || links[0].Name != "lo" {
			t.Errorf("links %+v, want those of the second answer", links)
		}
	})
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		var all []exchange
		for range dumpAttempts {
			all = append(all, torn)
		}
		links, err := serve(t, all...).Links()
		if !errors.Is(err, ErrInterrupted) || links != nil {
			t.Errorf("got %v, %v; want %v", links, err, ErrInterrupted)
		}
	})
}

// TestRefused crosses what the kernel may answer with every request.
func TestRefused(t *testing.T) {
	t.Parallel()
	get := func(body []byte) []exchange {
		return []exchange{{typ: unix.RTM_GETLINK, flags: netlink.Request, body: body}}
	}
	requests := []struct {
		name      string
		exchanges []exchange
		ask       func(*Client) error
		text      string
	}{
		{
			name:      "links",
			exchanges: []exchange{{typ: unix.RTM_GETLINK, flags: dumpFlags, body: linkRequest(0, extSkipStats)}},
			ask:       func(c *Client) error { _, err := c.Links(); return err }, text: "links: RTM_GETLINK: ",
		},
		{
			name: "link", exchanges: get(linkRequest(7, extSkipStats)),
			ask: func(c *Client) error { _, err := c.Link(7); return err }, text: "link 7: RTM_GETLINK: ",
		},
		{
			name:      "link by name",
			exchanges: get(appendAttribute(linkRequest(0, extSkipStats), unix.IFLA_IFNAME, []byte("eth9\x00"))),
			ask:       func(c *Client) error { _, err := c.LinkByName("eth9"); return err }, text: `link "eth9": RTM_GETLINK: `,
		},
		{
			name: "VFs", exchanges: get(linkRequest(7, extVF)),
			ask: func(c *Client) error { _, err := c.VFs(7); return err }, text: "VFs of link 7: RTM_GETLINK: ",
		},
		{
			name: "addresses", exchanges: dumpsIP(unix.RTM_GETADDR, 8),
			ask: func(c *Client) error { _, err := c.Addresses(); return err }, text: "addresses: RTM_GETADDR: ",
		},
		{
			name: "routes", exchanges: dumpsIP(unix.RTM_GETROUTE, 12),
			ask: func(c *Client) error { _, err := c.Routes(); return err }, text: "routes: RTM_GETROUTE: ",
		},
		{
			name: "rules", exchanges: dumpsIP(unix.RTM_GETRULE, 12),
			ask: func(c *Client) error { _, err := c.Rules(); return err }, text: "rules: RTM_GETRULE: ",
		},
		{
			name: "neighbours", exchanges: dumpsIP(unix.RTM_GETNEIGH, 12),
			ask: func(c *Client) error { _, err := c.Neighbours(); return err }, text: "neighbours: RTM_GETNEIGH: ",
		},
	}
	errnos := []struct {
		errno unix.Errno
		is    error
	}{
		{unix.ENODEV, fs.ErrNotExist},
		{unix.ENOENT, fs.ErrNotExist},
		{unix.EPERM, fs.ErrPermission},
		{unix.EACCES, fs.ErrPermission},
		{unix.EOPNOTSUPP, errors.ErrUnsupported},
		{unix.EBUSY, unix.EBUSY},
	}
	for _, r := range requests {
		for _, e := range errnos {
			t.Run(r.name+"/"+unix.ErrnoName(e.errno), func(t *testing.T) {
				t.Parallel()
				exchanges := slices.Clone(r.exchanges)
				var want []string
				for i := range exchanges {
					exchanges[i].errno = e.errno
					want = append(want, r.text+e.errno.Error()+": because")
				}
				err := r.ask(serve(t, exchanges...))
				var refusal *Error
				if !errors.As(err, &refusal) || refusal.Errno != e.errno || !errors.Is(err, e.is) {
					t.Fatalf("error %#v, want an *Error that is %v", err, e.is)
				}
				if want := strings.Join(want, "\n"); err.Error() != want {
					t.Errorf("error %q, want %q", err, want)
				}
				for _, other := range []error{fs.ErrNotExist, fs.ErrPermission} {
					if !errors.Is(e.is, other) && errors.Is(err, other) {
						t.Errorf("error %q is also %v", err, other)
					}
				}
			})
		}
	}
}

func TestSocketFails(t *testing.T) {
	t.Parallel()
	conn := nltest.Dial(func([]netlink.Message) ([]netlink.Message, error) { return nil, unix.ENOMEM })
	_, err := New(conn).Links()
	var refusal *Error
	if errors.As(err, &refusal) || !errors.Is(err, unix.ENOMEM) || !strings.HasPrefix(err.Error(), "links: RTM_GETLINK: ") {
		t.Errorf("error %v, want ENOMEM, and not as an answer of the kernel", err)
	}
}

// TestMalformed has one message among good ones that cannot be decoded.
func TestMalformed(t *testing.T) {
	t.Parallel()
	bad := message(unix.RTM_NEWLINK, 0, appendAttribute(linkBody(2), unix.IFLA_MTU, []byte{1, 2}))
	links, err := serve(t, exchange{
		typ: unix.RTM_GETLINK, flags: dumpFlags, body: linkRequest(0, extSkipStats),
		answer: []netlink.Message{linkMessage(1, "lo"), bad, linkMessage(3, "eth1")},
	}).Links()
	if want := "link 2: attribute 4: 2 bytes, want 4"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	want := []Link{{Index: 1, Name: "lo", Type: 1}, {Index: 3, Name: "eth1", Type: 1}}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// TestNotOurs has a kernel without IPv6, which answers for other families, and
// messages that were not asked for.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	v4 := message(unix.RTM_NEWRULE, 0, ruleBody(unix.AF_INET, 0, 0, 1, 0))
	multicast := message(unix.RTM_NEWRULE, 0, ruleBody(128, 0, 0, 1, 0)) // RTNL_FAMILY_IPMR
	exchanges := dumpsIP(unix.RTM_GETRULE, ruleHeaderSize)
	exchanges[0].answer = []netlink.Message{v4, message(unix.RTM_NEWLINK, 0, linkBody(1))}
	exchanges[1].answer = []netlink.Message{v4, multicast}
	rules, err := serve(t, exchanges...).Rules()
	if err != nil || len(rules) != 1 || rules[0].Family != "inet" {
		t.Errorf("got %+v, %v; want one rule", rules, err)
	}
}

// TestHalf has a kernel that refuses the one half of a list.
func TestHalf(t *testing.T) {
	t.Parallel()
	exchanges := dumpsIP(unix.RTM_GETRULE, ruleHeaderSize)
	exchanges[0].errno = unix.EAFNOSUPPORT
	exchanges[1].answer = []netlink.Message{message(unix.RTM_NEWRULE, 0, ruleBody(unix.AF_INET6, 0, 0, 1, 0))}
	rules, err := serve(t, exchanges...).Rules()
	if !errors.Is(err, unix.EAFNOSUPPORT) || len(rules) != 1 || rules[0].Family != "inet6" {
		t.Errorf("got %+v, %v; want one rule and %v", rules, err, unix.EAFNOSUPPORT)
	}
}

// TestConcurrent asks one client from many goroutines; it is of use with -race.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	c, err := Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				links, err := c.Links()
				if err != nil || len(links) == 0 {
					t.Errorf("got %v, %v", links, err)
				}
				if _, err := c.Link(1 << 30); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("link that is not there: %v, want %v", err, fs.ErrNotExist)
				}
				if _, err := c.Addresses(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClosed(t *testing.T) {
	t.Parallel()
	c, err := Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Links(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("error %v, want %v", err, fs.ErrClosed)
	}
}

func TestDialInNamespace(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "v0", "v1")
		ns := kerneltest.NewNetNS(t)
		kerneltest.MoveLink(t, "v1", ns)
		c, err := Dial(&Config{NetNS: int(ns.Fd())})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		v1, err := c.LinkByName("v1")
		if err != nil {
			t.Fatal(err)
		}
		if v1.ParentNetNS == nil {
			t.Errorf("%+v has a peer in another namespace, which it does not say", v1)
		}
		if _, err := c.LinkByName("v0"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("link of the other namespace: %v, want %v", err, fs.ErrNotExist)
		}
	})
}

// TestCookie wants another number of each namespace, and the same of two clients.
func TestCookie(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		seen := map[uint64]bool{}
		for range 3 {
			ns := kerneltest.NewNetNS(t)
			cookie, err := dialIn(t, ns).Cookie()
			again, err2 := dialIn(t, ns).Cookie()
			if err != nil || err2 != nil || cookie != again {
				t.Fatalf("%d, %v and %d, %v", cookie, err, again, err2)
			}
			if cookie == 0 {
				t.Skip("SKIPPED: this kernel has no cookies of network namespaces")
			}
			if seen[cookie] {
				t.Errorf("%d is that of two", cookie)
			}
			seen[cookie] = true
		}
	})
}
