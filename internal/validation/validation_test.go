package validation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/policy"
)

func reviewTexts(texts ...string) *Report {
	var sources []Source
	for i, text := range texts {
		sources = append(sources, Source{Name: fmt.Sprint("f", i), Text: []byte(text)})
	}
	return Review(sources, Options{Config: policy.DefaultConfig(), Namespace: "default"})
}

const pool = `apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: %s}
spec: {subnet: %s, ips: [%s]}
`

// TestReviewSeesAll has objects in conflict that stand in different files.
func TestReviewSeesAll(t *testing.T) {
	t.Parallel()
	a := fmt.Sprintf(pool, "a", "10.0.0.0/24", "10.0.0.1-10.0.0.9")
	b := fmt.Sprintf(pool, "b", "10.0.0.0/24", "10.0.0.9-10.0.0.20")
	refused := func(r *Report) []string {
		var names []string
		for i := range r.Objects {
			if !r.Objects[i].Accepted {
				names = append(names, r.Objects[i].Name)
			}
		}
		return names
	}
	want := refused(reviewTexts(a, b))
	if len(want) == 0 {
		t.Fatal("pools with the same address are accepted")
	}
	if diff := cmp.Diff(want, refused(reviewTexts(b, a))); diff != "" {
		t.Errorf("refused (-in order +turned round):\n%s", diff)
	}
}

// TestReviewInheritance has a pool take from a subnet of a later document what
// it leaves out: a gateway that its addresses hold is refused.
func TestReviewInheritance(t *testing.T) {
	t.Parallel()
	const subnet = `apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderSubnet
metadata: {name: s}
spec: {subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.99], gateway: 10.0.0.254}
`
	r := reviewTexts(fmt.Sprintf(pool, "a", "10.0.0.0/24", "10.0.0.200-10.0.0.254") + "---\n" + subnet)
	if r.Objects[0].Accepted {
		t.Errorf("a pool beyond its subnet is accepted: %+v", r.Objects)
	}
}

// TestReviewFollowing has errors that follow from others, which are not said.
func TestReviewFollowing(t *testing.T) {
	t.Parallel()
	r := reviewTexts(`apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: a}
spec: {subnet: 10.0.0.0/24, ips: [1], routes: [{dst: 10.1.0.0/16, gateway: 10.0.0.1}, {dst: x, gw: 10.0.0.1}]}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: {name: a}
spec: {cniType: ib-sriov, ibSriov: {}}
`)
	want := [][]string{{"spec.ips[0]", "spec.routes[0].gateway", "spec.routes[1].dst"}, {"spec.ibSriov"}}
	for i, o := range r.Objects {
		var got []string
		for _, e := range o.Errors {
			got = append(got, e.Path)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", o.Kind, diff)
		}
	}
}

func TestReviewCounts(t *testing.T) {
	t.Parallel()
	const (
		secret    = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
		namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x, annotations: {ipam.spidernet.io/typo: a}}\n"
		pod       = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, annotations: {%s: %q}}\nspec: {containers: []}\n"
	)
	r := reviewTexts(
		fmt.Sprintf(pool, "a", "10.0.0.0/24", "10.0.0.1")+"---\n"+secret+"---\n# nothing\n",
		"kind: [",
		fmt.Sprintf(pool, "a", "10.1.0.0/24", "10.1.0.1"),
		"# nothing\n---\n",
		namespace+"---\n"+fmt.Sprintf(pod, "silent", "a", "b"),
		fmt.Sprintf(pod, "noted", "cni.spidernet.io/rdma-resource-inject", "gpu")+"---\n"+fmt.Sprintf(pod, "refused", "ipam.spidernet.io/ippool", "x"),
	)
	got := []int{r.Accepted(), r.Refused(), r.Unreadable(), r.Workloads, r.Others}
	if diff := cmp.Diff([]int{1, 2, 2, 2, 2}, got); diff != "" {
		t.Errorf("accepted, refused, unreadable, workloads, others (-want +got):\n%s\nof %+v", diff, r.Objects)
	}
	if text := r.Objects[2].Errors[0].Text; text != "is there twice, at f0:1 and at f2:1: want one of them" {
		t.Errorf("of the second of a name it says %q", text)
	}
	if o := r.Objects[3]; o.File != "f3" || o.Errors[0].Text != "holds no object: a template that rendered nothing?" {
		t.Errorf("of a file without an object it says %+v", o)
	}
}

// FuzzReview wants of any text that each object is accepted or has errors, at
// lines that there are.
func FuzzReview(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "cmd", "railhead", "testdata", "validate", "*", "*.y*ml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("%d files: %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := 1
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // as YAML has it
			lines += strings.Count(text, end)
		}
		for _, o := range reviewTexts(text).Objects {
			if o.Accepted != (len(o.Errors) == 0) {
				t.Errorf("%s %s: accepted is %v, with errors %v", o.Kind, o.Name, o.Accepted, o.Errors)
			}
			for _, e := range o.Errors {
				if e.Line < 1 || e.Line > lines || e.Text == "" {
					t.Errorf("error %+v in a text of %d lines", e, lines)
				}
			}
		}
	})
}
