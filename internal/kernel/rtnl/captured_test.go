package rtnl

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/golden"
)

// captured returns messages that a kernel sent.
func captured(tb testing.TB) []netlink.Message {
	tb.Helper()
	file, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		tb.Fatal(err)
	}
	var msgs []netlink.Message
	for line := range strings.Lines(string(file)) {
		typ, body, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || typ == "#" {
			continue
		}
		n, err := strconv.ParseUint(typ, 10, 16)
		if err != nil {
			tb.Fatal(err)
		}
		data, err := hex.DecodeString(body)
		if err != nil {
			tb.Fatal(err)
		}
		msgs = append(msgs, message(netlink.HeaderType(n), 0, data))
	}
	return msgs
}

// addCaptured seeds a fuzz target with the messages of one type.
func addCaptured(f *testing.F, typ netlink.HeaderType) {
	f.Helper()
	for _, m := range captured(f) {
		if m.Header.Type == typ {
			f.Add(m.Data)
		}
	}
}

func TestCaptured(t *testing.T) {
	t.Parallel()
	events, err := parseEvents(captured(t))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(line, '\n'))
	}
	golden.Equal(t, "testdata/messages.json", got.Bytes())
}

// TestCapturedCut cuts and spoils every captured message everywhere: nothing
// but errors may come of it.
func TestCapturedCut(t *testing.T) {
	t.Parallel()
	for _, m := range captured(t) {
		for i := range m.Data {
			cut := m
			cut.Data = m.Data[:i]
			_, _ = parseEvents([]netlink.Message{cut})
			spoilt := m
			spoilt.Data = bytes.Clone(m.Data)
			spoilt.Data[i] ^= 0xff
			_, _ = parseEvents([]netlink.Message{spoilt})
		}
	}
}

// BenchmarkDecodeLinks decodes the links of a busy node.
func BenchmarkDecodeLinks(b *testing.B) {
	var links, msgs []netlink.Message
	for _, m := range captured(b) {
		if m.Header.Type == unix.RTM_NEWLINK {
			links = append(links, m)
		}
	}
	for i := range 1000 {
		msgs = append(msgs, links[i%len(links)])
	}
	b.ReportAllocs()
	for b.Loop() {
		decoded, err := decode(msgs, unix.RTM_NEWLINK, unix.AF_UNSPEC, parseLink)
		if err != nil || len(decoded) != 1000 {
			b.Fatalf("%d links, %v", len(decoded), err)
		}
	}
}

// BenchmarkLinks reads the links of the machine that it runs on.
func BenchmarkLinks(b *testing.B) {
	c, err := Dial(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Links(); err != nil {
			b.Fatal(err)
		}
	}
}
