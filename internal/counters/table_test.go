package counters

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"railhead/internal/inventory"
)

// TestSpecNames reads a simulated mlx5 PF and wants every name of the
// specification, with the type that it should have.
func TestSpecNames(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	snapshot := &inventory.Snapshot{Devices: []inventory.Device{r.device}}
	found := map[string]*Family{}
	for _, s := range Facts(snapshot, r.read(NewReader(&r.device), r.access())) {
		found[name(s.Series.Family)] = s.Series.Family
	}
	names := SpecNames()
	if len(names) != 34 {
		t.Fatalf("%d names, want 34", len(names))
	}
	perPriority := []string{"rx_discards", "tx_discards", "rx_pause", "tx_pause"}
	for _, spec := range names {
		want := "rdma_" + spec + "_total"
		if spec == "vport_speed_mbps" {
			want = "rdma_" + spec
		}
		f := found[want]
		switch {
		case f == nil:
			t.Errorf("no sample of %s", want)
		case slices.Contains(perPriority, spec) != slices.Equal(f.Labels, []string{"priority"}):
			t.Errorf("%s has the labels %q", want, f.Labels)
		}
	}
}

// TestFamilies holds every family against what an exposition wants of it.
func TestFamilies(t *testing.T) {
	t.Parallel()
	isName := regexp.MustCompile(`^rdma_[a-z0-9]+(_[a-z0-9]+)*$`).MatchString
	seen := map[string]bool{}
	shares := map[string]string{}
	for _, f := range Families() {
		if seen[name(f)] || seen[f.Name] {
			t.Errorf("%s: more than one family", f.Name)
		}
		seen[name(f)], seen[f.Name] = true, true
		if !isName(f.Name) {
			t.Errorf("%s: no good name", f.Name)
		}
		if strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s: _total is for who exposes it", f.Name)
		}
		if !isSentence(f.Help) {
			t.Errorf("%s: the help is no sentence: %q", f.Name, f.Help)
		}
		if f.Unit != "" && !strings.HasSuffix(f.Name, "_"+f.Unit) {
			t.Errorf("%s: the name does not end with the unit %q", f.Name, f.Unit)
		}
		if f.Kind == Info && !strings.HasSuffix(f.Name, "_info") {
			t.Errorf("%s: families of information end with _info", f.Name)
		}
		if f.Pod != "" && shares[f.Pod] != "" {
			t.Errorf("%s and %s have their shares in %s", f.Name, shares[f.Pod], f.Pod)
		}
		shares[f.Pod] = f.Name
	}
	for share := range shares {
		if share != "" && !seen[share] {
			t.Errorf("%s is no family", share)
		}
	}
}

// isSentence tells whether a text begins with a capital or a name, and ends
// with a full stop.
func isSentence(s string) bool {
	first, _, _ := strings.Cut(s, " ")
	isName := first == "iWARP"
	return len(s) > 10 && (isName || s[0] >= 'A' && s[0] <= 'Z') && strings.HasSuffix(s, ".") && !strings.Contains(s, "  ")
}

// TestPromlint has Prometheus' own rules applied to all names and helps.
func TestPromlint(t *testing.T) {
	t.Parallel()
	kinds := map[Kind]dto.MetricType{Counter: dto.MetricType_COUNTER, Gauge: dto.MetricType_GAUGE, Info: dto.MetricType_GAUGE, Histogram: dto.MetricType_HISTOGRAM}
	var list []*dto.MetricFamily
	for _, f := range Families() {
		list = append(list, &dto.MetricFamily{Name: new(name(f)), Help: new(f.Help), Type: kinds[f.Kind].Enum()})
	}
	problems, err := promlint.NewWithMetricFamilies(list).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestRows holds every row against the rules of the tables.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, s := range sets {
		keys := map[string]bool{}
		for i := range s.rows {
			r := &s.rows[i]
			where := s.source.String() + " " + strings.Join(s.drivers, ",") + " " + r.key
			if keys[r.key] {
				t.Errorf("%s: twice in a set", where)
			}
			keys[r.key] = true
			if f := known.byName[s.family(r)]; f != nil && (f.Kind != r.kind || len(f.Labels) > 0) {
				t.Errorf("%s: kind %d, but %s is of kind %d with the labels %q", where, r.kind, f.Name, f.Kind, f.Labels)
			}
			if s.family(r) == "" && len(r.feeds) == 0 {
				t.Errorf("%s: it is exported nowhere", where)
			}
			if r.saturates && (r.bits == 0 || r.bits > 32) {
				t.Errorf("%s: it stops at its largest value and is %d bits wide", where, r.bits)
			}
			for _, feed := range r.feeds {
				f := known.byName[strings.Fields(strings.TrimPrefix(feed, "?"))[0]]
				if f.Kind != r.kind {
					t.Errorf("%s: kind %d feeds %s of kind %d", where, r.kind, f.Name, f.Kind)
				}
			}
		}
	}
}

// TestScales wants the parts of a family to be of one scale within a source, so
// that they can be added.
func TestScales(t *testing.T) {
	t.Parallel()
	for from, counters := range known.counters {
		scales := map[*Family]float64{}
		for key, c := range counters {
			for _, o := range c.outputs {
				if old, ok := scales[o.family]; ok && old != c.scale {
					t.Errorf("%v %s: %s gets values times %v and %v", from, key, o.family.Name, old, c.scale)
				}
				scales[o.family] = c.scale
			}
		}
	}
}

func TestFamilyOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"ip4InOctets":    "rdma_ip4_in_octets",
		"RxECNMrkd":      "rdma_rx_ecn_mrkd",
		"RxUDP":          "rdma_rx_udp",
		"RNR sent":       "rdma_rnr_sent",
		"VL15_dropped":   "rdma_vl15_dropped",
		"out_of_buffer":  "rdma_out_of_buffer",
		"rdma_rx_bytes":  "rdma_rdma_rx_bytes",
		"tcpRetransSegs": "rdma_tcp_retrans_segs",
	} {
		if got := familyOf(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// FuzzFamilyOf makes a family of any name that a driver may have, and wants one
// that an exposition takes.
func FuzzFamilyOf(f *testing.F) {
	for _, key := range []string{"out_of_buffer", "ip4InOctets", "Rcvd Out of order packets", "", "[0]: tx_bytes", "Ünknown#", "\xff\x00"} {
		f.Add(key)
	}
	isName := regexp.MustCompile(`^rdma_[a-z0-9_]*$`).MatchString
	f.Fuzz(func(t *testing.T, key string) {
		got := familyOf(key)
		if !isName(got) {
			t.Errorf("%q becomes %q", key, got)
		}
		if isName("rdma_"+key) && got != "rdma_"+key {
			t.Errorf("%q is a good name and becomes %q", key, got)
		}
	})
}

func TestDriver(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"mlx5_core": "mlx5", "mlx4_core": "mlx4", "bnxt_en": "bnxt_re", "ice": "irdma", "idpf": "irdma", "efa": "efa",
		"mana": "mana", "erdma": "erdma", "ionic": "ionic", "hns3": "hns", "qede": "qedr", "nobody_knows": "",
	} {
		if got := Driver(&inventory.Device{Kind: inventory.PF, PCI: &inventory.PCI{Driver: module}}); got != want {
			t.Errorf("%s: %q, want %q", module, got, want)
		}
	}
	for protocol, want := range map[string]string{"roce": "rxe", "iw": "siw"} {
		if got := Driver(&inventory.Device{Kind: inventory.Virtual, RDMA: &inventory.RDMA{Protocol: protocol}}); got != want {
			t.Errorf("software RDMA of %s: %q, want %q", protocol, got, want)
		}
	}
	if got := Driver(&inventory.Device{Kind: inventory.PF}); got != "" {
		t.Errorf("without a PCI function: %q", got)
	}
}

// TestOrigins wants every counter of the tables to be found by its family.
func TestOrigins(t *testing.T) {
	t.Parallel()
	counted := map[string]int{}
	for _, f := range Families() {
		for _, o := range Origins(f) {
			counted[o.Source+o.Key]++
		}
	}
	for _, s := range sets {
		for _, r := range s.rows {
			if !s.again && counted[s.source.String()+r.key] == 0 {
				t.Errorf("%v %s is of no family", s.source, r.key)
			}
		}
	}
	if list := Origins(known.byName["rdma_pod_info"]); list != nil {
		t.Errorf("rdma_pod_info comes from %v", list)
	}
}
