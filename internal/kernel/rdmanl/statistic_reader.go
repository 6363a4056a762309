package rdmanl

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// PortStatistics reads the hardware counters of one port again and again
// ([Client.Statistics]), and keeps what does not change between readings: once
// the names are known, only the socket allocates. It holds no socket. It is not
// safe for concurrent use.
type PortStatistics struct {
	Device uint32
	Port   int

	names  []string
	values []uint64
}

// Read returns the names and, in the same order, the values. As long as names
// is the same slice, they are the same. Both are good until the next Read and
// must not be written. Errors are those of [Client.Statistics].
func (s *PortStatistics) Read(c *Client) (names []string, values []uint64, err error) {
	r := request{command: CmdStatGet, device: &s.Device, port: &s.Port}
	b, err := c.get(r)
	if err != nil {
		return nil, nil, err
	}
	if err := s.decode(b); err != nil {
		return nil, nil, newError(r, err)
	}
	return s.names, s.values, nil
}

// decode takes an answer. Entries without a name or a value are left out, and
// attributes that are new are passed over.
func (s *PortStatistics) decode(b []byte) error {
	s.values = s.values[:0]
	walk := attributeWalk{rest: b}
	for walk.next() {
		if walk.typ != AttrStatHWCounters {
			continue
		}
		table := attributeWalk{rest: walk.data}
		for table.next() {
			if table.typ == AttrStatHWCounterEntry {
				s.entry(&table)
			}
		}
		walk.fail(table.err)
	}
	if len(s.names) > len(s.values) {
		s.names = append([]string(nil), s.names[:len(s.values)]...)
	}
	return walk.err
}

// entry takes the counter that is the current attribute.
func (s *PortStatistics) entry(table *attributeWalk) {
	var name []byte
	var value uint64
	valued := false
	entry := attributeWalk{rest: table.data}
	for entry.next() {
		switch entry.typ {
		case AttrStatHWCounterEntryName:
			name = text(entry.data)
		case AttrStatHWCounterEntryValue:
			value, valued = entry.uint64(), true
		}
	}
	table.fail(entry.err)
	if len(name) > 0 && valued {
		s.put(name, value)
	}
}

// put appends a counter. Where its name is not the one of the last reading, the
// names become another slice.
func (s *PortStatistics) put(name []byte, value uint64) {
	i := len(s.values)
	s.values = append(s.values, value)
	switch {
	case i >= len(s.names):
		s.names = append(s.names[:i:i], string(name))
	case s.names[i] != string(name):
		s.names = append(append([]string(nil), s.names[:i]...), string(name))
	}
}

// text is a string attribute without its end.
func text(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

// attributeWalk goes through attributes without allocating.
type attributeWalk struct {
	rest []byte
	typ  uint16
	data []byte
	err  error
}

var errShortAttribute = errors.New("attribute is cut short")

const (
	attributeHeader = 4
	attributeFlags  = 0xc000 // NLA_F_NESTED, NLA_F_NET_BYTEORDER
)

func (w *attributeWalk) next() bool {
	if w.err != nil || len(w.rest) == 0 {
		return false
	}
	if len(w.rest) < attributeHeader {
		w.err = errShortAttribute
		return false
	}
	length := int(binary.NativeEndian.Uint16(w.rest))
	w.typ = binary.NativeEndian.Uint16(w.rest[2:]) &^ attributeFlags
	if length < attributeHeader || length > len(w.rest) {
		w.err = errShortAttribute
		return false
	}
	w.data = w.rest[attributeHeader:length]
	w.rest = w.rest[min((length+3)&^3, len(w.rest)):]
	return true
}

func (w *attributeWalk) uint64() uint64 {
	if len(w.data) != 8 {
		w.fail(fmt.Errorf("attribute %d of %d bytes, want 8", w.typ, len(w.data)))
		return 0
	}
	return binary.NativeEndian.Uint64(w.data)
}

func (w *attributeWalk) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
