package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/kubetest"
	"railhead/internal/policy"
)

// living runs a test with a Cache that keeps what it knows in a directory, as
// running does, and returns what it logged.
func living(t *testing.T, a *apiServer, dir string, test func(c *Cache)) string {
	t.Helper()
	var text bytes.Buffer
	runningWith(t, Config{API: a.Config(), Node: "n1", Dir: dir, Log: slog.New(slog.NewTextHandler(&text, nil))}, test)
	return text.String()
}

// away is an API server that is not there.
func away() *apiServer {
	a := newAPIServer()
	a.IsAway = true
	return a
}

// full is small, with a pod whose application has a pool of its own.
func full() *apiServer {
	a := small()
	a.set(replicaSetsPath, replicaSetOf("web-2"))
	a.set(podsPath, ownedPod("web-2-a", "w1", "ReplicaSet", "web-2"))
	own := poolOf("own", "10.0.2.0/24", "10.0.2.9")
	owner := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web", UID: "uid-web"}
	kubetest.Meta(own)["labels"] = owner.Labels()
	own["spec"].(content)["podAffinity"] = owner.Affinity() //nolint:forcetypeassert // it is made above
	a.set(poolsPath, own)
	return a
}

// keptOfFull is a directory with what an agent knew of full when it was killed,
// some seconds after it began.
func keptOfFull(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	living(t, full(), dir, func(*Cache) {
		after(askFor + keepAfter)
		if err := os.Rename(filepath.Join(dir, diskFile), filepath.Join(dir, "killed")); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Rename(filepath.Join(dir, "killed"), filepath.Join(dir, diskFile)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readKept(t *testing.T, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, diskFile))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeKept(t *testing.T, dir string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, diskFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// asOf is what is told of when it was that something kept was known.
func asOf(t *testing.T, dir string) string {
	t.Helper()
	var h heading
	if err := json.NewDecoder(bytes.NewReader(readKept(t, dir))).Decode(&h); err != nil || h.At.IsZero() {
		t.Fatalf("as of %v, error %v", h.At, err)
	}
	return h.At.Format("as_of=2006-01-02T15:04:05.000Z")
}

// TestRestartAway wants an agent that starts while the API server is away to know
// all that the one before knew, as if it had run on, and all that became of it once
// the API server is back.
func TestRestartAway(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	a, at := full(), asOf(t, dir)
	a.IsAway = true
	log := living(t, a, dir, func(c *Cache) {
		after(time.Minute)
		if err := c.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		if err := c.Current(); err == nil || !strings.Contains(err.Error(), "Pods of this node") || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("current: %v, want that nothing was read", err)
		}
		wantAll(t, newAPIServer(), c)
		wantOwned(t, c)
		if _, err := c.Pod(t.Context(), "ai", "a-0", ""); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("any pod of a name: error %v, want that it cannot be known", err)
		}
		if _, err := c.Pod(t.Context(), "ai", "a-0", "u1"); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("another pod of a name: error %v, want that it cannot be known", err)
		}
		a.delete(podsPath, "ai/a-0")
		a.delete(nadsPath, "ai/rail0")
		a.delete(poolsPath, "pool0")
		a.delete(spiderPath+"spiderreservedips", "r")
		a.delete(coordinatorsPath, "default")
		a.delete(configMapsPath, "railhead-system/spiderpool-conf")
		a.ComeBack()
		after(2 * time.Minute)
		if err := c.Current(); err != nil {
			t.Errorf("not current: %v", err)
		}
		wantNone(t, c)
		if _, err := c.Pod(t.Context(), "ai", "web-2-a", ""); err != nil {
			t.Error(err)
		}
	})
	if n := strings.Count(log, "they are as they were"); n != 1 || !strings.Contains(log, at+" pods=2") {
		t.Errorf("it was told %d times from when that is:\n%s", n, log)
	}
}

// wantOwned wants what is above the pod of full, and the pool of that.
func wantOwned(t *testing.T, c *Cache) {
	t.Helper()
	pod, err := c.Pod(t.Context(), "ai", "web-2-a", "w1")
	if err != nil {
		t.Fatal(err)
	}
	if above, err := c.Above(t.Context(), pod); err != nil || len(above) != 1 || above[0].UID != "uid-web" {
		t.Errorf("above: %v, error %v", above, err)
	}
	if pool, ok := c.Catalog().Pool("own"); !ok || pool.Owner == nil || pool.Owner.UID != "uid-web" || !c.owned.has("ai") {
		t.Errorf("pool %+v, %t", pool, ok)
	}
}

// wantNone wants what wantAll wants to be gone.
func wantNone(t *testing.T, c *Cache) {
	t.Helper()
	if _, err := c.Pod(t.Context(), "ai", "a-0", "u0"); !apierrors.IsNotFound(err) {
		t.Errorf("pod that is gone: error %v", err)
	}
	if _, err := c.NAD("ai", "rail0"); !apierrors.IsNotFound(err) {
		t.Errorf("NAD that is gone: error %v", err)
	}
	if _, _, err := c.Coordinator(); !apierrors.IsNotFound(err) {
		t.Errorf("coordinator that is gone: error %v", err)
	}
	if pool, ok := c.Catalog().Pool("pool0"); ok {
		t.Errorf("pool that is gone: %+v", pool)
	}
	if reserved := c.Catalog().Reserved(4).Ranges(); len(reserved) > 0 {
		t.Errorf("addresses are reserved that are not: %v", reserved)
	}
	if !c.Catalog().Config().EnableIPv6 {
		t.Error("settings that are gone are in force")
	}
}

// TestRestartSilent wants an API server that does not answer to be waited for no
// longer than a moment.
func TestRestartSilent(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	a := full()
	a.IsSilent = true
	living(t, a, dir, func(c *Cache) {
		after(askFor)
		wantAll(t, newAPIServer(), c)
	})
}

// TestRestartTwice wants what is old to be said to be as old as it is, and not to
// be less after each start.
func TestRestartTwice(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	at := asOf(t, dir)
	for range 3 {
		log := living(t, away(), dir, func(c *Cache) {
			after(time.Hour)
			c.disk.note() // as a call would that read something of an API server that comes and goes
			after(time.Hour)
			wantAll(t, newAPIServer(), c)
			wantOwned(t, c)
		})
		if !strings.Contains(log, at) {
			t.Errorf("it is not %s, when it was read:\n%s", at, log)
		}
	}
}

// TestRestartThere wants nothing of an earlier run to be known where the API server
// is there.
func TestRestartThere(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	a := newAPIServer()
	log := living(t, a, dir, func(c *Cache) {
		after(time.Minute)
		wantNone(t, c)
		if err := c.Current(); err != nil {
			t.Errorf("not current: %v", err)
		}
	})
	if strings.Contains(log, "as they were") {
		t.Errorf("what was is known:\n%s", log)
	}
	living(t, away(), dir, func(c *Cache) {
		after(time.Minute)
		if c.pods.get("ai", "a-0") != nil {
			t.Error("a pod of the run before the last is known")
		}
	})
}

// TestRestartPartly wants what the API server tells to be known, and of what it does
// not, what was; but no kind that it does not have.
func TestRestartPartly(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	a := newAPIServer()
	a.Answers[poolsPath] = http.StatusInternalServerError
	a.Missing = []string{"/apis/k8s.cni.cncf.io"}
	living(t, a, dir, func(c *Cache) {
		after(time.Minute)
		if c.pods.get("ai", "a-0") != nil {
			t.Error("a pod is known that is gone")
		}
		if _, err := c.NAD("ai", "rail0"); err == nil || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("NAD: error %v", err)
		}
		if _, ok := c.Catalog().Pool("pool0"); !ok {
			t.Error("a pool is not known that was")
		}
	})
}

// TestOtherNode wants what was known of another node not to be used, and no more
// what another version kept.
func TestOtherNode(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	text := string(readKept(t, dir))
	rest := func(a *apiServer) { // what there is but pods
		a.Answers[podsPath] = http.StatusInternalServerError
	}
	for _, test := range []struct {
		name, from, to string
		api            func(*apiServer)
		want           string
	}{
		{"name", `"node":"n1"`, `"node":"n2"`, func(a *apiServer) { a.IsAway = true }, "it is of node n2, want n1"},
		{"UID", `"uid":"node-1"`, `"uid":"node-2"`, rest, "with UID node-2, want node-1"},
		{"version", `"version":1`, `"version":2`, func(a *apiServer) { a.IsAway = true }, "it has version 2, want 1"},
		{"none", text[:strings.Index(text, "\n")+1], "", func(a *apiServer) { a.IsAway = true }, "it has version 0, want 1"},
		{"the same", "", "", rest, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			changed := strings.Replace(text, test.from, test.to, 1)
			writeKept(t, dir, summed(changed[:len(changed)-int(lastSize)]))
			a := newAPIServer()
			test.api(a)
			log := living(t, a, dir, func(c *Cache) {
				after(time.Minute)
				if isKnown := c.pods.get("ai", "a-0") != nil; isKnown != (test.want == "") {
					t.Errorf("a pod is known: %t", isKnown)
				}
				a.Change(func() { a.IsAway, a.Answers = false, map[string]int{} })
				after(3 * time.Minute)
				if err := c.Current(); err != nil {
					t.Errorf("not current: %v", err)
				}
			})
			if test.want != "" && (strings.Count(log, "is not used") != 1 || !strings.Contains(log, test.want)) {
				t.Errorf("want once that it is not used, because %q:\n%s", test.want, log)
			}
		})
	}
}

// summed is what is kept with its last line.
func summed(body string) []byte {
	sum := sha256.New()
	sum.Write([]byte(body))
	return []byte(body + lastLine(sum))
}

// TestDamaged wants nothing to be taken of what is damaged or cut off anywhere.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	text := readKept(t, dir)
	c, err := New(Config{API: away().Config(), Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, at int, damaged []byte) {
		t.Helper()
		if _, err := takeParts(bytes.NewReader(damaged), int64(len(damaged)), c.isOurs, c.parts()); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Fatalf("byte %d of %d is %s: error %v, want that it is damaged", at, len(text), what, err)
		}
	}
	for i := range text {
		changed := slices.Clone(text)
		changed[i] ^= 1 << (i % 8)
		refused("another", i, changed)
		refused("the end", i, text[:i])
	}
	refused("missing", 0, text[1:])
	refused("followed by another", len(text), append(slices.Clone(text), '\n'))
	if known := len(c.pods.names()) + len(c.nads.names()) + len(c.Catalog().Pools()) + len(c.namespaces.all()) + len(c.above.all()); known > 0 || c.Ready() == nil {
		t.Errorf("%d objects are known, ready: %v", known, c.Ready())
	}
	if _, err := readParts(filepath.Join(dir, diskFile), c.isOurs, c.parts()); err != nil || c.Ready() != nil {
		t.Errorf("what is whole: error %v, ready: %v", err, c.Ready())
	}
}

// TestNoFile wants what is there instead of a file to be told, and to keep no agent
// from starting.
func TestNoFile(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(path string) error{
		"a directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"nothing":     func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := place(filepath.Join(dir, diskFile)); err != nil {
				t.Fatal(err)
			}
			log := living(t, away(), dir, func(c *Cache) {
				after(time.Minute)
				if err := c.Ready(); err == nil {
					t.Error("it is ready with nothing")
				}
			})
			if isTold := strings.Contains(log, "is not used"); isTold != (name != "nothing") {
				t.Errorf("it is told: %t:\n%s", isTold, log)
			}
		})
	}
}

// TestNoRoom wants a disk that takes nothing to be told once, and to be tried again.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil { // where the directory is to be
		t.Fatal(err)
	}
	a := full()
	log := living(t, a, there, func(c *Cache) {
		for i := range 30 {
			a.set(podsPath, podOf("n1", fmt.Sprintf("p%d", i), fmt.Sprintf("p%d", i), nil))
			after(time.Minute)
			wantAll(t, a, c)
		}
		if err := os.Remove(there); err != nil {
			t.Fatal(err)
		}
		after(2 * keepAgain)
		if text := readKept(t, there); !bytes.Contains(text, []byte(`"p29"`)) {
			t.Error("what came is not kept")
		}
	})
	if cannot, again := strings.Count(log, "cannot be kept"), strings.Count(log, "is kept on the node again"); cannot != 1 || again != 1 {
		t.Errorf("told %d times that it cannot be kept, and %d times that it can again:\n%s", cannot, again, log)
	}
}

// TestKeptSeldom wants news to be on the disk soon, not to be written more often than
// is sensible, and what is none not to be written at all.
func TestKeptSeldom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := full()
	living(t, a, dir, func(*Cache) {
		after(time.Minute)
		was := readKept(t, dir)
		writes := func(seconds int, each func(i int)) (n int) {
			for i := range seconds {
				each(i)
				after(time.Second)
				if now := readKept(t, dir); !bytes.Equal(now, was) {
					n, was = n+1, now
				}
			}
			return n
		}
		if n := writes(2, func(i int) {
			a.set(podsPath, podOf("n1", "new", "new", content{"labels": content{"i": fmt.Sprint(i)}}))
		}); n != 1 {
			t.Errorf("a pod that came after long was written %d times in two seconds, want once", n)
		}
		after(time.Minute)
		if n := writes(100, func(i int) {
			a.set(podsPath, podOf("n1", "busy", "busy", content{"labels": content{"i": fmt.Sprint(i)}}))
		}); n < 8 || n > 11 {
			t.Errorf("what changes each second was written %d times in 100 seconds", n)
		}
		after(time.Minute)
		was = readKept(t, dir)
		if n := writes(100, func(i int) {
			a.set(podsPath, podOf("n1", "busy", "busy", content{
				"labels": content{"i": "99"}, "managedFields": []any{content{"manager": fmt.Sprint(i)}},
			}))
		}); n != 0 {
			t.Errorf("what nobody needs was written %d times", n)
		}
		for name, change := range map[string]func(){
			"a pod goes": func() { a.delete(podsPath, "ai/busy") },
			"pods come": func() {
				a.set(podsPath, podOf("n1", "one", "one", nil))
				after(keepAfter / 2)
				a.set(podsPath, podOf("n1", "two", "two", nil))
			},
			"a network": func() { a.set(nadsPath, nadOf("ai", "rail0", "{}")) },
			"a pool":    func() { a.set(poolsPath, poolOf("pool9", "10.0.9.0/24", "10.0.9.1")) },
		} {
			if n := writes(20, func(i int) {
				if i == 0 {
					change()
				}
			}); n != 1 {
				t.Errorf("%s: written %d times, want once", name, n)
			}
		}
	})
}

// TestKeptAtEnd wants an end to keep what came a moment before; but not the little
// that was known to one that ended as it began.
func TestKeptAtEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := full()
	living(t, a, dir, func(*Cache) {
		after(time.Minute)
		a.set(podsPath, podOf("n1", "last", "last", nil))
		synctest.Wait()
	})
	was := readKept(t, dir)
	if !bytes.Contains(was, []byte(`"last"`)) {
		t.Error("what came last is not kept")
	}
	a.IsSilent = true
	living(t, a, dir, func(c *Cache) { c.disk.note() })
	if diff := cmp.Diff(string(was), string(readKept(t, dir))); diff != "" {
		t.Errorf("what an agent kept that had just begun (-before +after):\n%s", diff)
	}
}

// TestRecallLate wants what was read to stay, though the disk comes after it.
func TestRecallLate(t *testing.T) {
	t.Parallel()
	c := empty(t)
	podCalled := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: name, UID: "u"}}
	}
	c.pods.recall(podCalled("gone"))
	if err := c.pods.Replace([]any{podCalled("there")}, ""); err != nil {
		t.Fatal(err)
	}
	c.pods.recall(podCalled("late"))
	c.pods.recalled()
	if names := c.pods.names(); len(names) != 1 || names[0].Name != "there" {
		t.Errorf("known are %v", names)
	}
}

// TestKeptNone wants that there are none of a kind to be known, too.
func TestKeptNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const reserved = spiderPath + "spiderreservedips"
	a := newAPIServer()
	a.Answers[reserved] = http.StatusInternalServerError
	living(t, a, dir, func(*Cache) {
		after(time.Minute)
		a.Change(func() { delete(a.Answers, reserved) })
		after(2 * time.Minute)
	})
	living(t, away(), dir, func(c *Cache) {
		after(askFor)
		if err := c.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
	})
}

// TestKilledWriting wants an agent that died as it wrote to leave what was kept
// before, and the next one to take away the rest.
func TestKilledWriting(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	half := filepath.Join(dir, "."+diskFile+"4711")
	if err := os.WriteFile(half, readKept(t, dir)[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	living(t, away(), dir, func(c *Cache) {
		after(askFor)
		wantAll(t, newAPIServer(), c)
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("files %v, error %v, want one", files, err)
		}
	})
	if info, err := os.Stat(filepath.Join(dir, diskFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want it to be for its owner only", info, err)
	}
}
