package counters

import (
	"slices"
	"strconv"
	"strings"

	"railhead/internal/inventory"
)

// place is what a series is about: a port, a netdev of it, or a whole device. It
// is not safe for concurrent use.
type place struct {
	labels []Label
	slots  [][]slot // of its series, slotsAtOnce in each, so that they stay where they are
}

func newPlace(device, port, netdev string) *place {
	p := &place{labels: []Label{{"device", device}}}
	if port != "" {
		p.labels = append(p.labels, Label{"port", port})
	}
	if netdev != "" {
		p.labels = append(p.labels, Label{"netdev", netdev})
	}
	return p
}

// String is the labels' values: mlx5_0/1/eth0.
func (p *place) String() string {
	var values []string
	for _, l := range p.labels {
		values = append(values, l.Value)
	}
	return strings.Join(values, "/")
}

// label is the value of a label; empty where there is none.
func (p *place) label(name string) string {
	for _, l := range p.labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

func portPlace(device string, p *inventory.Port) *place {
	return newPlace(device, strconv.Itoa(p.Number), p.Netdev)
}

// values are those of a family's own labels; empty where a series has no such
// label.
type values [maxOwnLabels]string

// slot is a series, and which of the groups that could give it does.
type slot struct {
	series Series
	rank   int32 // of the group; 0 for none yet
}

// slotsAtOnce is how many slots are made at a time, since a place has many that
// live as long as it does, and most places are of a VF and have few.
const slotsAtOnce = 4

// slot is the series of a family with values, the same each time. It is looked
// for among all of the place, a few hundred at most: an index would take almost
// half as much memory as they do themselves.
func (p *place) slot(f *Family, own values, scale float64) *slot {
	for _, slots := range p.slots {
		for i := range slots {
			if s := &slots[i]; s.series.Family == f && own.are(s.series.Labels[len(p.labels):]) {
				return s
			}
		}
	}
	last := len(p.slots) - 1
	if last < 0 || len(p.slots[last]) == slotsAtOnce {
		p.slots = append(p.slots, make([]slot, 0, slotsAtOnce))
		last++
	}
	slots := append(p.slots[last], slot{series: Series{Family: f, Labels: p.with(f, own), Scale: scale}})
	p.slots[last] = slots
	return &slots[len(slots)-1]
}

// with returns the labels of the place and those that have a value. Series
// without labels of their own share those of the place.
func (p *place) with(f *Family, own values) []Label {
	var labels [maxOwnLabels]Label
	n := 0
	for i, name := range f.Labels {
		if i < len(own) && own[i] != "" {
			labels[n] = Label{name, own[i]}
			n++
		}
	}
	if n == 0 {
		return slices.Clip(p.labels)
	}
	return slices.Concat(p.labels, labels[:n])
}

// are tells whether labels were made of the values, of the same family.
func (own values) are(labels []Label) bool {
	n := 0
	for _, value := range own {
		if value == "" {
			continue
		}
		if n == len(labels) || labels[n].Value != value {
			return false
		}
		n++
	}
	return n == len(labels)
}
