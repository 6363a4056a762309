package nft

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// mark is Mark, and skips the test where the kernel has no nftables.
func mark(t *testing.T, ns int, table, dev string, value, mask uint32) {
	t.Helper()
	err := Mark(ns, table, dev, value, mask)
	if errors.Is(err, ErrNotSupported) {
		t.Skipf("THIS KERNEL CANNOT BE TESTED ON: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tables returns the tables of a namespace as text.
func tables(t *testing.T, ns int) string {
	t.Helper()
	conn, err := nftables.New(nftables.WithNetNSFd(ns))
	if err != nil {
		t.Fatal(err)
	}
	all, err := conn.ListTables()
	if err != nil {
		t.Fatal(err)
	}
	chains, err := conn.ListChains()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, table := range all {
		fmt.Fprintf(&b, "table %d %s\n", table.Family, table.Name)
	}
	for _, c := range chains {
		fmt.Fprintf(&b, "chain %s %s: type %s hook %d priority %d policy %d\n", c.Table.Name, c.Name, c.Type, *c.Hooknum, *c.Priority, *c.Policy)
		rules, err := conn.GetRules(c.Table, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			fmt.Fprintf(&b, "\t%s\n", text(r.Exprs))
		}
	}
	return b.String()
}

// text shows expressions.
func text(exprs []expr.Any) string {
	var words []string
	for _, e := range exprs {
		switch e := e.(type) {
		case *expr.Meta:
			words = append(words, fmt.Sprintf("meta %d%s", e.Key, map[bool]string{true: " set"}[e.SourceRegister]))
		case *expr.Ct:
			words = append(words, fmt.Sprintf("ct %d", e.Key)) // the library does not read that it is set: TestAnswersFindBack does
		case *expr.Cmp:
			words = append(words, fmt.Sprintf("%s %x", map[expr.CmpOp]string{expr.CmpOpEq: "==", expr.CmpOpNeq: "!="}[e.Op], e.Data))
		case *expr.Bitwise:
			words = append(words, fmt.Sprintf("& %x ^ %x", e.Mask, e.Xor))
		default:
			words = append(words, fmt.Sprintf("%T", e))
		}
	}
	return strings.Join(words, ", ")
}

// marked is a table of marks as tables shows it, in the numbers of the kernel:
// family 1 is inet, hooks 0 and 3 are prerouting and output, meta 3 and 6 are
// mark and iifname, ct 0 and 3 state and mark.
func marked(table, dev string, mark, mask uint32) string {
	set := fmt.Sprintf("& %x ^ %x", word(^mask), word(mark))
	iif := fmt.Sprintf("meta 6, == %x", name(dev))
	restore := fmt.Sprintf("ct 3, & %x ^ %x, == %x, meta 3, %s, meta 3 set", word(mask), word(0), word(mark), set)
	return fmt.Sprintf("chain %s prerouting: type filter hook 0 priority -150 policy 1\n", table) +
		fmt.Sprintf("\t%s, ct 0, & %x ^ %x, != %x, ct 3, %s, ct 3\n", iif, word(8), word(0), word(0), set) +
		fmt.Sprintf("\t%s, %s\n", iif, restore) +
		fmt.Sprintf("chain %s output: type route hook 3 priority -150 policy 1\n\t%s\n", table, restore)
}

func TestMark(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		ns := int(kerneltest.NewNetNS(t).Fd())
		check := func(what, want string) {
			t.Helper()
			if diff := cmp.Diff(want, tables(t, ns)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		mark(t, ns, "railhead", "veth0", 1, 1)
		check("marked", "table 1 railhead\n"+marked("railhead", "veth0", 1, 1))
		mark(t, ns, "railhead", "veth0", 1, 1)
		check("again", "table 1 railhead\n"+marked("railhead", "veth0", 1, 1))
		mark(t, ns, "railhead", "eth7", 0x100, 0xff00)
		check("otherwise", "table 1 railhead\n"+marked("railhead", "eth7", 0x100, 0xff00))
		mark(t, ns, "other", "veth0", 1, 1)
		for range 2 { // idempotent
			if err := Unmark(ns, "railhead"); err != nil {
				t.Fatal(err)
			}
			check("one unmarked", "table 1 other\n"+marked("other", "veth0", 1, 1))
		}
		if err := Unmark(ns, "other"); err != nil {
			t.Fatal(err)
		}
		check("unmarked", "")
		if here := tables(t, 0); here != "" {
			t.Errorf("tables in another namespace:\n%s", here)
		}
	})
}

func TestMarkErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		ns         int
		table, dev string
		mark, mask uint32
		want       string
	}{
		{"no table", 0, "", "veth0", 1, 1, `nftables: table "": want a name of 1 to 249 bytes`},
		{"long table", 0, strings.Repeat("r", 250), "veth0", 1, 1, `": want a name of 1 to 249 bytes`},
		{"no interface", 0, "railhead", "", 1, 1, `nftables: table railhead: interface "": want a name of 1 to 15 bytes`},
		{"long interface", 0, "railhead", "0123456789abcdef", 1, 1, `interface "0123456789abcdef": want`},
		{"no mark", 0, "railhead", "veth0", 0, 1, `mark 0x0 with mask 0x1: want a mark within its mask, not 0`},
		{"mark beyond its mask", 0, "railhead", "veth0", 3, 1, `mark 0x3 with mask 0x1: want`},
		{"no namespace", 1 << 20, "railhead", "veth0", 1, 1, `nftables: table inet railhead: `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := Mark(tt.ns, tt.table, tt.dev, tt.mark, tt.mask); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if err := Unmark(1<<20, "railhead"); err == nil {
		t.Error("no error without a namespace")
	}
}

// TestLongestName has names that the kernel just takes, also for a trial.
func TestLongestName(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		name := strings.Repeat("r", maxTable)
		mark(t, 0, name, "0123456789abcde", 1, 1)
		if err := commit(0, name+trial, parts("veth0", 1, 1), true); err != nil {
			t.Error(err)
		}
		if got := tables(t, 0); !strings.HasPrefix(got, "table 1 "+name+"\nchain ") {
			t.Errorf("a trial left something:\n%s", got)
		}
	})
}

// TestRefusedChangesNothing has the kernel refuse the last part of a table.
func TestRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		mark(t, 0, "railhead", "veth0", 1, 1)
		before := tables(t, 0)
		bad := append(parts("veth1", 2, 2), part{"module nothing", rule("nowhere")})
		err := commit(0, "railhead", bad, false)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v, want %v", err, fs.ErrNotExist)
		}
		err = missing(bad, err, func(p []part) error { return commit(0, "railhead"+trial, p, true) })
		if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "want module nothing: ") {
			t.Errorf("error %v, want %v with the module's name", err, ErrNotSupported)
		}
		if diff := cmp.Diff(before, tables(t, 0)); diff != "" {
			t.Errorf("tables (-before +after):\n%s", diff)
		}
	})
}

func TestMissing(t *testing.T) {
	t.Parallel()
	all := parts("veth0", 1, 1)
	for i, p := range all {
		try := func(tried []part) error {
			if len(tried) > i {
				return fmt.Errorf("receive: %w", unix.EOPNOTSUPP)
			}
			return nil
		}
		err := missing(all, unix.ENOENT, try)
		if want := "not supported by the kernel: want " + p.needs + ": receive: operation not supported"; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	if err := missing(all, unix.ENOENT, func([]part) error { return unix.ENOMEM }); !errors.Is(err, unix.ENOENT) || errors.Is(err, ErrNotSupported) {
		t.Errorf("error %v, want %v", err, unix.ENOENT)
	}
}

// TestAnswersFindBack has a client ask over veth0 with an address that the main
// table leads to eth0 for.
func TestAnswersFindBack(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		client := kerneltest.NewNetNS(t)
		kerneltest.AddVeth(t, "veth0", "client0")
		kerneltest.AddVeth(t, "eth0", "elsewhere")
		kerneltest.MoveLink(t, "client0", client)
		for _, link := range []string{"veth0", "eth0", "elsewhere"} {
			kerneltest.SetUp(t, link)
		}
		for _, dev := range []string{"all", "veth0"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+dev+"/rp_filter", []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
		}
		pod, asker := netip.MustParsePrefix("10.0.0.2/24"), netip.MustParsePrefix("192.0.2.9/32")
		kerneltest.AddAddress(t, "eth0", pod)
		route := func(dev string, table int, dst netip.Prefix) {
			t.Helper()
			link, err := net.InterfaceByName(dev)
			if err != nil {
				t.Fatal(err)
			}
			do(t, rtnl.RouteAdd{Route: rtnl.Route{Table: table, Dst: dst, LinkIndex: link.Index, Scope: "link"}})
		}
		route("eth0", 254, netip.MustParsePrefix("0.0.0.0/0"))
		route("veth0", 500, netip.MustParsePrefix("0.0.0.0/0"))
		do(t, rtnl.RuleAdd{Rule: rtnl.Rule{Family: "inet", Priority: 100, Mark: 1, MarkMask: 1, Action: "lookup", Table: 500}})

		server, err := net.ListenPacket("udp4", pod.Addr().String()+":7777")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Close() }()
		go func() { // answers what it is asked until it is closed
			buf := make([]byte, 64)
			for {
				n, from, err := server.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = server.WriteTo(buf[:n], from)
			}
		}()
		var conn net.Conn
		in(t, client, func() error {
			kerneltest.SetUp(t, "client0")
			kerneltest.AddAddress(t, "client0", asker)
			route("client0", 254, netip.PrefixFrom(pod.Addr(), 32))
			conn, err = net.Dial("udp4", server.LocalAddr().String())
			return err
		})
		defer func() { _ = conn.Close() }()

		mark(t, 0, "railhead", "veth0", 1, 1)
		// The links may not carry yet: ask until there is an answer.
		buf := make([]byte, 64)
		for range 6000 {
			if _, err := conn.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := conn.Read(buf); err == nil {
				return
			} else if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
		}
		t.Error("no answer came back")
	})
}

func do(t *testing.T, request rtnl.Request) {
	t.Helper()
	client, err := rtnl.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if errs := client.Do(request); errs != nil {
		t.Fatal(errs)
	}
}

func in(t *testing.T, file *os.File, fn func() error) {
	t.Helper()
	ns, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if err := ns.Do(fn); err != nil {
		t.Fatal(err)
	}
}
