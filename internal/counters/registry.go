package counters

import (
	"fmt"
	"slices"
	"strings"
)

// Families returns all families that can be exported, in the order of their
// exposition: those that mean the same with every driver first, the kernel's
// own after them, then those of pods and of the exporter itself. It is for
// reading only. Counters that the tables do not know have families of their
// own, of kind Unknown, which come with their samples.
func Families() []*Family { return known.families }

// Groups returns the same families in the same order, by subject.
func Groups() []Group { return known.groups }

// Group is families of one subject.
type Group struct {
	Title    string
	About    string // what they have in common, in a sentence or more
	Families []*Family
}

// registry is the tables, ready to be looked up.
type registry struct {
	families []*Family
	groups   []Group
	byName   map[string]*Family
	counters map[origin]map[string]*counter // by the kernel's name
}

// origin is where a counter comes from: a source, of a driver or of any.
type origin struct {
	source source
	driver string
}

// counter is a row for one digit of its #.
type counter struct {
	*row
	outputs []output
	shares  []output // where queue pairs have it apart
}

// output is a series that a counter is, or is a part of, but for its place.
type output struct {
	family *Family
	values values // of the family's own labels
	second bool   // only where no other counter of the same question feeds the family
}

// maxOwnLabels is how many labels of its own a family of counters has at most.
const maxOwnLabels = 2

// newRegistry puts the tables together. A subject without families of its own
// has those of all rows, or those of the pods' shares.
func newRegistry(sets []*set, subjects []subject) *registry {
	g := &registry{byName: map[string]*Family{}, counters: map[origin]map[string]*counter{}}
	for i := range subjects {
		g.groups = append(g.groups, Group{Title: subjects[i].title, About: subjects[i].about})
		first := len(g.families)
		switch subjects[i].families {
		case nil:
			subjects[i].add(g, sets)
		default:
			for _, f := range subjects[i].families {
				g.addFamily(f)
			}
		}
		g.groups[i].Families = g.families[first:len(g.families):len(g.families)]
	}
	for _, s := range sets {
		g.addCounters(s)
	}
	return g
}

// addRows adds the families that have counters as they are.
func (g *registry) addRows(sets []*set) {
	for _, s := range sets {
		g.addRaw(s)
	}
}

func (g *registry) addFamily(f Family) {
	f.Unit = unitOf(f.Name)
	g.byName[f.Name] = &f
	g.families = append(g.families, &f)
}

// addRaw adds the families that have counters of a set as they are.
func (g *registry) addRaw(s *set) {
	for i := range s.rows {
		r := &s.rows[i]
		name := s.family(r)
		if name == "" {
			continue
		}
		if old := g.byName[name]; old != nil {
			if old.Help == "" {
				old.Help = r.help
			}
			continue
		}
		g.addFamily(Family{Name: name, Kind: r.kind, Help: r.help, Scope: r.scope, Tier: r.tier, Pod: podFamily(s, r, name)})
	}
}

// podFamily is the family of a pod's share of a kernel counter. A counter that
// is part of a family for all drivers has its share there.
func podFamily(s *set, r *row, name string) string {
	if s.source != statistics || r.kind != Counter || r.scope != Function || strings.HasPrefix(r.key, "vport_") ||
		len(r.feeds) > 0 && !r.pod {
		return ""
	}
	return "rdma_pod_" + strings.TrimPrefix(name, "rdma_")
}

// addShares adds the families of pods' shares in families of devices.
func (g *registry) addShares([]*set) {
	for _, f := range slices.Clone(g.families) {
		if f.Pod == "" {
			continue
		}
		g.addFamily(Family{
			Name: f.Pod, Kind: f.Kind, Scope: WholeNode, Tier: f.Tier,
			Labels: slices.Concat(shareLabels, f.Labels),
			Help:   "The share of a pod, since it has the device. " + f.Help,
		})
	}
}

func (g *registry) addCounters(s *set) {
	drivers := s.drivers
	if len(drivers) == 0 {
		drivers = []string{""}
	}
	for _, driver := range drivers {
		from := origin{s.source, driver}
		if g.counters[from] == nil {
			g.counters[from] = map[string]*counter{}
		}
		for i := range s.rows {
			g.addCounter(g.counters[from], s, &s.rows[i])
		}
	}
}

func (g *registry) addCounter(counters map[string]*counter, s *set, r *row) {
	if !strings.Contains(r.key, "#") {
		counters[r.key] = g.counter(s, r, 0)
		return
	}
	for i := range digits {
		counters[expand(r.key, digits[i])] = g.counter(s, r, digits[i])
	}
}

func (g *registry) counter(s *set, r *row, digit byte) *counter {
	c := &counter{row: r}
	if name := s.family(r); name != "" {
		c.outputs = append(c.outputs, output{family: g.byName[name]})
	}
	for _, feed := range r.feeds {
		c.outputs = append(c.outputs, g.output(r, feed, digit))
	}
	if s.source == statistics {
		c.shares = g.sharesOf(c)
	}
	return c
}

// output reads a feed of a row, "name value…", where - is no value and a ?
// before the name makes it a second choice.
func (g *registry) output(r *row, feed string, digit byte) output {
	first, second := strings.CutPrefix(feed, "?")
	words := strings.Fields(expand(first, digit))
	f := g.byName[words[0]]
	if f == nil || len(words)-1 != len(f.Labels) || len(f.Labels) > maxOwnLabels {
		panic(fmt.Sprintf("counters: row %q feeds %q, want a family with as many values as it has labels", r.key, feed))
	}
	o := output{family: f, second: second}
	for i, value := range words[1:] {
		o.values[i] = strings.TrimPrefix(value, "-")
	}
	return o
}

// find looks up a counter of a driver by the kernel's name for it: among the
// driver's own first, then among those of all drivers.
func (g *registry) find(s source, driver, key string) *counter {
	if c := g.counters[origin{s, driver}][key]; c != nil {
		return c
	}
	return g.counters[origin{s, ""}][key]
}

// share puts the tables' own strings in place of names that equal them, so that
// devices with the same counters do not each keep their names.
func (g *registry) share(s source, driver string, names []string) {
	for i, name := range names {
		if c := g.find(s, driver, name); c != nil && c.key == name {
			names[i] = c.key
		}
	}
}

// has tells whether a driver has rows for a source.
func (g *registry) has(s source, driver string) bool { return len(g.counters[origin{s, driver}]) > 0 }

// hasTraffic tells whether a driver tells bytes or packets by RDMA statistics.
func (g *registry) hasTraffic(driver string) bool {
	for _, c := range g.counters[origin{statistics, driver}] {
		if c.tier == Traffic {
			return true
		}
	}
	return false
}

// units are what a name of a family can end with to say its unit.
const units = "bytes_per_second bytes seconds ratio packets requests frames bits lanes"

// unitOf is the unit that a name of a family ends with.
func unitOf(name string) string {
	for unit := range strings.FieldsSeq(units) {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return ""
}
