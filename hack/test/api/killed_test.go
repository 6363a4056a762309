package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"railhead/internal/golden"
	"railhead/internal/loopback"
	"railhead/internal/policy"
)

// TestKilled kills the controller after each number of writes that it can have
// made, and has another one go on. Each time things end as they would have
// without, and nothing is written more often.
//
// Killed means that no request passes any more: neither the write that comes
// next nor one that tells somebody of the end.
func TestKilled(t *testing.T) {
	s := Exclusive(t)
	s.Configure(t, usual)
	s.namespace(t, "spiderpool", nil)
	var whole run
	t.Run("never", func(t *testing.T) {
		known := ""
		if !golden.Update() {
			known = readFile(t, "testdata/killed/end.txt")
		}
		whole = s.killedAfter(t, -1, known)
		golden.Equal(t, "testdata/killed/end.txt", whole.end)
		whole.writes[subnetStatus] = min(whole.writes[subnetStatus], 2)
		golden.Equal(t, "testdata/killed/writes.txt", printCounts(whole.writes))
	})
	if t.Failed() {
		return
	}
	killed := true
	n := 0
	for ; killed; n++ {
		t.Run(fmt.Sprintf("after %d", n), func(t *testing.T) {
			killed = false
			got := s.killedAfter(t, n, whole.end)
			killed = got.killed
			checkRun(t, whole, got)
		})
	}
	if n < len(whole.writes) {
		t.Errorf("the controller was killed %d times, and writes %d objects", n-1, len(whole.writes))
	}
}

// subnetStatus is written at first, and once a pool that is cut from the subnet, or
// once for both.
const subnetStatus = "change spidersubnets//rails/status"

// checkRun compares a run with one of a controller that was never killed.
func checkRun(t *testing.T, whole, got run) {
	t.Helper()
	if diff := cmp.Diff(whole.end, got.end); diff != "" {
		t.Errorf("the end (-never killed +killed):\n%s", diff)
	}
	for what, times := range got.writes {
		most := whole.writes[what]
		if what == subnetStatus {
			most = 3
		}
		if times > most {
			t.Errorf("%s: %d times, and at most %d times when never killed", what, times, most)
		}
	}
}

// run is what came of one run.
type run struct {
	end    string
	writes Counts // of the replicas
	killed bool   // before it had done everything
}

// killedAfter has a first replica make n writes and a second one do the rest, of
// the same work, until things are as wanted. With a negative n the second one does
// all.
func (s *Server) killedAfter(t *testing.T, n int, want string) run {
	t.Helper()
	s.makeWork(t)
	before := len(s.Writes(t, "replica"))
	address := loopback.Address(t) // of one replica after the other, as of a Service
	result := run{killed: true}
	if n >= 0 {
		connection := &cutOff{left: n}
		c := s.Begin(t, Replica{Wrap: connection.around, WebhookAddress: address})
		result.end, result.killed = s.awaitEnd(t, want, connection.isCut)
		c.Stop(t)
	}
	if result.killed {
		c := s.Begin(t, Replica{WebhookAddress: address})
		s.AwaitReady(t, c)
		result.end, _ = s.awaitEnd(t, want, func() bool { return false })
		s.rail(t, lastRail) // what was to be done before is done
		c.Stop(t)
	}
	result.writes = anonymous(CountWrites(s.Writes(t, "replica")[before:]))
	return result
}

// lastRail is of a network that is made when all others are.
const lastRail = 90

// awaitEnd waits until things are as wanted, and returns how they are, or until the
// replica is killed. With -update nobody knows how they will be: then they are so
// for some seconds.
func (s *Server) awaitEnd(t *testing.T, want string, isKilled func() bool) (end string, killed bool) {
	t.Helper()
	const unchanged = 5 * time.Second
	since := time.Now()
	Eventually(t, func() string {
		if killed = isKilled(); killed {
			return ""
		}
		now := s.inventory(t)
		if now != end {
			end, since = now, time.Now()
		}
		switch {
		case want != "" && end != want:
			return "the end that is wanted (-want +got):\n" + cmp.Diff(want, end)
		case want == "" && time.Since(since) < unchanged:
			return "an end of changes"
		}
		return ""
	})
	return end, killed
}

// makeWork has the server empty but for what the replicas are to find.
func (s *Server) makeWork(t *testing.T) {
	t.Helper()
	s.wipe(t, ours())
	for _, o := range s.work(t) {
		made := o.DeepCopy()
		s.retried(t, func() error { return s.Create(t.Context(), made) }) // as in wipe
		if o.GetName() == "deleted" {
			if err := s.Delete(t.Context(), made); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// work is what the replicas find: what admission would have made of
// testdata/killed/work.yaml.
func (s *Server) work(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	catalog := policy.NewCatalog()
	var objects []*unstructured.Unstructured
	for _, o := range Objects(t, readFile(t, "testdata/killed/work.yaml")) {
		if o.GroupVersionKind().Group != "spiderpool.spidernet.io" {
			objects = append(objects, o)
			continue
		}
		admitted, errs := decode(t, o)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		catalog.Default(admitted)
		text, err := yaml.Marshal(admitted)
		if err != nil {
			t.Fatal(err)
		}
		o = Objects(t, string(text))[0]
		delete(o.Object, "status")
		objects = append(objects, o)
	}
	return objects
}

// anonymous counts objects whose names a UID makes as one, and patches as updates.
func anonymous(counts Counts) Counts {
	result := Counts{}
	for what, n := range counts {
		verb, object, _ := strings.Cut(what, " ")
		parts := strings.Split(object, "/")
		switch {
		case parts[0] == "events":
			continue // of what is told twice, one is kept and counted
		case strings.HasPrefix(parts[2], fmt.Sprintf("gpu%d", lastRail)):
			continue
		case strings.HasPrefix(parts[2], "auto"):
			parts[2] = parts[2][:strings.LastIndex(parts[2], "-")] + "-UID"
		}
		if verb == "update" || verb == "patch" {
			verb = "change"
		}
		result[verb+" "+strings.Join(parts, "/")] += n
	}
	return result
}

func printCounts(counts Counts) string {
	var text strings.Builder
	for _, what := range sortedKeys(counts) {
		fmt.Fprintf(&text, "%d %s\n", counts[what], what)
	}
	return text.String()
}
