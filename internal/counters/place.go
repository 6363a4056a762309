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
	slots  map[*Family]*slot // of its series: the first of each family
	spare  []slot            // that are not used yet
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
	rank   int   // of the group; 0 for none yet
	next   *slot // of the same family and place, with other values
}

// slotsAtOnce is how many slots are made at a time, since a place has many that
// live as long as it does.
const slotsAtOnce = 16

// slot is the series of a family with values, the same each time.
func (p *place) slot(f *Family, own values, scale float64) *slot {
	first := p.slots[f]
	for s := first; s != nil; s = s.next {
		if own.are(s.series.Labels[len(p.labels):]) {
			return s
		}
	}
	if p.slots == nil {
		p.slots = map[*Family]*slot{}
	}
	if len(p.spare) == 0 {
		p.spare = make([]slot, slotsAtOnce)
	}
	s := &p.spare[0]
	p.spare = p.spare[1:]
	*s = slot{series: Series{Family: f, Labels: p.with(f, own), Scale: scale}, next: first}
	p.slots[f] = s
	return s
}

// with returns the labels of the place and those that have a value. Series
// without labels of their own share those of the place.
func (p *place) with(f *Family, own values) []Label {
	labels := slices.Clip(p.labels)
	for i, name := range f.Labels {
		if i < len(own) && own[i] != "" {
			labels = append(labels, Label{name, own[i]})
		}
	}
	return slices.Clip(labels)
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
