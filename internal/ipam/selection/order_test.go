package selection

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// affinities are all that can be said of pools for the pod of thePod.
var affinities = []string{
	"", "podAffinity: {matchLabels: {app: b}}", "nodeName: [node2]", "nodeAffinity: {matchLabels: {gpu: a100}}",
	"namespaceName: [ai]", "namespaceAffinity: {matchLabels: {team: a}}", "multusName: [ai/rail0]", "disable: true",
}

// TestUserOrder wants the candidates in the order in which a user listed them,
// whatever their affinity, for any list.
func TestUserOrder(t *testing.T) {
	t.Parallel()
	c := policy.NewCatalog()
	var names []string
	disabled := map[string]bool{}
	for i := range 40 {
		name := fmt.Sprintf("p%02d", i)
		affinity := affinities[i%len(affinities)]
		pools(t, c, map[string]string{name: fmt.Sprintf("{subnet: 10.%d.0.0/24, ips: [10.%d.0.1], %s}", i, i, affinity)})
		names = append(names, name)
		disabled[name] = affinity == "disable: true"
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		listed := slices.Clone(names[:1+r.IntN(len(names))])
		want := slices.DeleteFunc(slices.Clone(listed), func(name string) bool { return disabled[name] })
		if len(want) == 0 {
			continue
		}
		text, err := json.Marshal(map[string][]string{"ipv4": listed})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Select(c, thePod(map[string]string{v2beta1.AnnotationPool: string(text)}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range s.NICs[0].Families[0].Pools {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("listed %v: got %v, want %v", listed, got, want)
		}
	}
}

// FuzzSelect wants, for any annotation of pools: each pool considered once;
// candidates that a name of the list stands for, those that names stand for
// alone in the user's order; and an error where there are none.
func FuzzSelect(f *testing.F) {
	f.Add(`{"ipv4":["rail1","rail*","off"]}`)
	f.Add(`{"ipv4":["*","rail0"],"ipv6":["s?x"]}`)
	f.Add(`{"ipv4":["[a-z]*"]}`)
	f.Add(`[{"interface":"net1","ipv4":["rail0-b","rail0"]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		c := theCatalog(t)
		s, err := Select(c, thePod(map[string]string{v2beta1.AnnotationPool: text}))
		choice, _ := annotation.Pool(nil, text)
		listed := map[int64][]string{4: choice.IPv4, 6: choice.IPv6}
		for _, n := range s.NICs {
			if (n.Err == nil) != (err == nil) {
				t.Errorf("%s: error %v, and %v of the interface", text, err, n.Err)
			}
			if n.Err == nil && len(n.Families) == 0 {
				t.Errorf("%s: neither an address nor an error", text)
			}
			once(t, n.Considered)
			for _, family := range n.Families {
				inOrder(t, listed[family.Version], family.Pools)
			}
		}
	})
}

func once(t *testing.T, considered []Considered) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range considered {
		key := fmt.Sprint(c.Family, c.Pool)
		if seen[key] {
			t.Errorf("%s was considered twice for IPv%d", c.Pool, c.Family)
		}
		seen[key] = true
	}
}

// inOrder wants each candidate to come no earlier than those before it: by the
// first name of the list that stands for it.
func inOrder(t *testing.T, listed []string, candidates []policy.Pool) {
	t.Helper()
	last := 0
	for _, p := range candidates {
		first := slices.IndexFunc(listed, func(name string) bool {
			ok, err := path.Match(name, p.Name)
			return err == nil && ok
		})
		if first < last {
			t.Errorf("pool %s is of place %d of %q, and comes after one of place %d", p.Name, first, listed, last)
		}
		last = first
	}
}

// BenchmarkSelect chooses for a pod with eight rails in a cluster of a thousand pools.
func BenchmarkSelect(b *testing.B) {
	c := policy.NewCatalog()
	for i := range 1000 {
		pools(b, c, map[string]string{fmt.Sprintf("p%03d", i): fmt.Sprintf("{subnet: 10.%d.%d.0/24, ips: [10.%d.%d.1-10.%d.%d.200]}", i/250, i%250, i/250, i%250, i/250, i%250)})
	}
	for _, form := range []string{"p%03d", "p%02d?"} {
		f := thePod(nil)
		f.Interfaces = f.Interfaces[:1]
		for rail := range 8 {
			name := fmt.Sprintf(form, rail*10)
			f.Interfaces = append(f.Interfaces, Interface{
				Name: fmt.Sprintf("net%d", rail+1), IPAM: true, Network: types.NamespacedName{Namespace: "ai", Name: fmt.Sprintf("rail%d", rail)},
				Pools: policy.Pools{IPv4: []string{name}},
			})
		}
		b.Run(form, func(b *testing.B) {
			for b.Loop() {
				if _, err := Select(c, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
