package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// found are the repairs of a server that has done all of them.
func (w *world) found() []string {
	w.t.Helper()
	w.rest()
	return w.repairs()
}

// repairs are those that a server has told of so far.
func (w *world) repairs() []string {
	w.t.Helper()
	var list []string
	for line := range strings.Lines(w.log.String()) {
		var r struct{ Pod, Sandbox, Found, Error string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
		if r.Found == "" {
			continue
		}
		list = append(list, fmt.Sprintf("%s %s: %s", r.Pod, r.Sandbox, r.Found))
		if r.Error != "" {
			list[len(list)-1] += ": " + r.Error
		}
	}
	return list
}

// again starts the agent again, with other records in between.
func (w *world) again(change func(record.Attachment) record.Attachment) {
	w.t.Helper()
	w.stop()
	for _, att := range w.server.config.Records.All() {
		if _, err := w.server.config.Records.Put(change(att)); err != nil {
			w.t.Fatal(err)
		}
	}
	w.start()
}

func TestRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(record.Attachment) record.Attachment
		before func(w *world, s *box) // what happens while no agent runs
		after  func(w *world, s *box)
		want   string // what is found; "": nothing
		left   bool   // the pod keeps all
		other  bool   // nothing in the namespace is touched
	}{
		{name: "nothing happened", left: true},
		{
			name: "half attached", want: "ai/train box1: it was half attached when the agent ended",
			change: func(a record.Attachment) record.Attachment { a.State, a.Answer = record.Attaching, nil; return a },
		},
		{
			name: "half attached, and half of that is there", want: "ai/train box1: it was half attached when the agent ended",
			change: func(a record.Attachment) record.Attachment { a.State, a.Answer = record.Attaching, nil; return a },
			before: func(w *world, s *box) {
				w.must(s.client, rtnl.LinkDelete{Name: "net3"}, rtnl.LinkDelete{Name: "net8"})
			},
		},
		{
			name: "half taken away", want: "ai/train box1: it was half taken away when the agent ended",
			change: func(a record.Attachment) record.Attachment { a.State = record.Detaching; return a },
		},
		{
			name: "another boot", want: "ai/train box1: the node was started again since it was attached",
			change: func(a record.Attachment) record.Attachment { a.BootID = "older"; return a },
			before: func(w *world, s *box) { // as the node's end takes all with it
				w.must(s.client, rtnl.LinkDelete{Name: "eth0"}, rtnl.LinkDeleteGroup{Group: 0x5248})
			},
		},
		{
			name: "another namespace", other: true, want: "ai/train box1: its network namespace is another one now",
			change: func(a record.Attachment) record.Attachment {
				plan := *a.Plan
				plan.ID.Ino++
				a.ID.Ino++
				a.Plan = &plan
				return a
			},
			before: func(w *world, s *box) {
				w.must(s.client, rtnl.LinkDelete{Name: "eth0"}, rtnl.LinkDeleteGroup{Group: 0x5248})
			},
		},
		{
			name: "a link is gone", left: true, want: "ai/train box1: the kernel has other than what was attached; the pod runs, and nothing was changed: interface net3",
			before: func(w *world, s *box) { w.must(s.client, rtnl.LinkDelete{Name: "net3"}) },
		},
		{
			name: "a parent has another name", left: true, want: "ai/train box1: netdevs of the node have other names: enp13s0f0np0 below net3 is gpu3 now",
			before: func(w *world, _ *box) { w.must(w.node, rtnl.LinkSet{Index: 112, Name: "gpu3"}) },
			after:  func(w *world, _ *box) { w.must(w.node, rtnl.LinkSet{Index: 112, Name: rail(2)}) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				s := w.sandbox("box1", "train")
				before := w.snapshot(s)
				w.ok(s, cnicall.Add)
				w.stop()
				if tt.before != nil {
					tt.before(w, s)
				}
				if tt.change == nil {
					tt.change = func(a record.Attachment) record.Attachment { return a }
				}
				w.again(tt.change)
				if found := strings.Join(w.found(), "\n"); tt.want == "" && found != "" || !strings.HasPrefix(found, tt.want) {
					t.Errorf("found %q, want %q", found, tt.want)
				}
				if tt.left {
					if tt.want == "" {
						w.ok(s, cnicall.Check)
						w.ok(s, cnicall.Add)
						if len(w.server.claimed) != 1 {
							t.Errorf("claims %v, want those of the pod", w.server.claimed)
						}
					}
					w.ok(s, cnicall.Del)
				}
				w.rest()
				if tt.after != nil {
					tt.after(w, s)
				}
				after := w.snapshot(s)
				if tt.other {
					delete(before, "pod")
					delete(after, "pod")
				}
				if diff := cmp.Diff(before, after, comparable()...); diff != "" {
					t.Errorf("left behind (-before +after):\n%s", diff)
				}
				w.checkNothingLeft()
			})
		})
	}
}

// TestPlanLost has the disk lose what was made for a pod: CHECK says so, and DEL takes
// the links before it frees their addresses.
func TestPlanLost(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.ok(s, cnicall.Add)
		w.again(func(a record.Attachment) record.Attachment { a.Plan, a.PlanLost = nil, true; return a })
		if found := strings.Join(w.found(), "\n"); !strings.HasPrefix(found, "ai/train box1: its record is damaged") {
			t.Errorf("found %q", found)
		}
		w.refused(s, cnicall.Check, cnicall.CodeInternal, "ai/train", "not known any more")
		w.ok(s, cnicall.Del)
		links, err := s.client.Links()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			if l.Group == attach.Group {
				t.Errorf("%s is left", l.Name)
			}
		}
		if n := w.addresses.held(); n != 0 {
			t.Errorf("%d sandboxes have addresses", n)
		}
	})
}

// TestLostSandbox has a pod's new sandbox take the place of one that the runtime
// lost, and leave one alone that lives.
func TestLostSandbox(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, two, three := w.sandbox("box1", "train"), w.sandbox("box2", "train"), w.sandbox("box3", "train")
		w.ok(one, cnicall.Add)
		w.ok(two, cnicall.Add)
		if n := w.addresses.held(); n != 2 {
			t.Errorf("%d sandboxes have addresses, want both", n)
		}
		one.end()
		w.ok(three, cnicall.Add)
		if found := w.found(); len(found) != 1 || !strings.Contains(found[0], "box1: the runtime lost it") {
			t.Errorf("repairs %q", found)
		}
		w.ok(two, cnicall.Del)
		w.ok(three, cnicall.Del)
		w.ok(one, cnicall.Del)
		w.checkNothingLeft()
	})
}

// TestStill leaves a sandbox alone that a call has attached anew or taken away since it
// was looked at.
func TestStill(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "plain")
		w.ok(s, cnicall.Add)
		old, _ := w.server.config.Records.Get("box1")
		ended, end := context.WithCancel(t.Context())
		end()
		free := make(slots, 1)
		for _, step := range []struct {
			name  string
			verb  string // before
			ctx   context.Context
			still bool
		}{
			{"as it was", cnicall.Check, t.Context(), true},
			{"the agent ends", cnicall.Check, ended, false},
			{"taken away", cnicall.Del, t.Context(), false},
			{"attached anew", cnicall.Add, t.Context(), false},
		} {
			w.ok(s, step.verb)
			now, leave := w.server.enter(step.ctx, old, free)
			if (leave != nil) != step.still || step.still && now.ContainerID != "box1" {
				t.Errorf("%s: %+v, to be worked at: %t", step.name, now, leave != nil)
			}
			if leave != nil {
				leave()
			}
			if len(free) > 0 {
				t.Errorf("%s: the slot is not free", step.name)
			}
		}
		w.ok(s, cnicall.Del) // nobody has the lock
	})
}

// TestBusy has the one slot there is wanted for a sandbox that somebody works at: others
// have it meanwhile.
func TestBusy(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.ok(w.sandbox("box1", "plain"), cnicall.Add)
		w.ok(w.sandbox("box2", "plain"), cnicall.Add)
		w.rest()
		one, _ := w.server.config.Records.Get("box1")
		two, _ := w.server.config.Records.Get("box2")
		done, err := w.server.sandboxes.lock(t.Context(), "box1")
		if err != nil {
			t.Fatal(err)
		}
		free, entered := make(slots, 1), make(chan bool)
		go func() {
			_, leave := w.server.enter(t.Context(), one, free)
			entered <- leave != nil
			leave()
		}()
		for waits := false; !waits; time.Sleep(time.Millisecond) {
			w.server.sandboxes.mu.Lock()
			waits = w.server.sandboxes.byID["box1"].users > 1
			w.server.sandboxes.mu.Unlock()
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute) // who has to wait for the other, waits for ever
		defer stop()
		if _, leave := w.server.enter(ctx, two, free); leave == nil {
			t.Error("box2 waits for box1")
		} else {
			leave()
		}
		done()
		if !<-entered {
			t.Error("box1 is not entered once nobody works at it")
		}
	})
}

// TestRestartStuck has a plugin of another be stuck in as many sandboxes as are put
// right at once, and more: pods that run are served.
func TestRestartStuck(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.cluster.pod("one", map[string]string{cniv1.AnnotationNetworks: "gpu1"})
		var healthy []*box
		for n := range repairers + 4 {
			w.ok(w.sandbox(fmt.Sprintf("half%d", n), "plain"), cnicall.Add)
		}
		for n := range 4 {
			healthy = append(healthy, w.sandbox(fmt.Sprintf("box%d", n), "one"))
			w.ok(healthy[n], cnicall.Add)
		}
		stuck, mended := make(chan struct{}, repairers+4), make(chan struct{})
		w.delegate.during = func(_ context.Context, call string) error {
			if call == "DEL portmap" {
				stuck <- struct{}{}
				<-mended
			}
			return nil
		}
		w.again(func(a record.Attachment) record.Attachment {
			if strings.HasPrefix(a.ContainerID, "half") {
				a.State = record.Detaching
			}
			return a
		})
		for range repairers {
			<-stuck
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute) // who waits for the plugin, waits for ever
		defer stop()
		for _, s := range healthy {
			if answer := w.server.Handle(ctx, s.request(cnicall.Check)); answer.Error != nil {
				t.Errorf("%s: %v", s.id, answer.Error)
			}
		}
		close(mended)
		if found := w.found(); len(found) != repairers+4 {
			t.Errorf("%d repairs, want %d: %q", len(found), repairers+4, found)
		}
		for _, s := range healthy {
			w.ok(s, cnicall.Del)
		}
		w.checkNothingLeft()
	})
}

// TestUnknownDel is for a sandbox that nobody recorded.
func TestUnknownDel(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		w.ok(s, cnicall.Add)
		for _, att := range w.server.config.Records.All() {
			if _, err := w.server.config.Records.Remove(att.ContainerID); err != nil {
				t.Fatal(err)
			}
		}
		w.delegate.asked()
		w.ok(s, cnicall.Del)
		after := w.snapshot(s)
		for _, all := range []map[string]any{before, after} {
			for _, at := range all {
				delete(at.(map[string]any), "rules") // a record would say which are ours
			}
		}
		if diff := cmp.Diff(before, after, comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		if want, got := []string{"DEL portmap eth0", "DEL calico eth0"}, w.delegate.asked(); !cmp.Equal(want, got) {
			t.Errorf("plugins of others: %q, want %q", got, want)
		}
		s.path = "/proc/self/fd/4711"
		w.ok(s, cnicall.Del)
		s.path = ""
		w.ok(s, cnicall.Del)
	})
}

// TestDelFails has a plugin of another fail: all else is taken away, and the next
// DEL does the rest.
func TestDelFails(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		w.ok(s, cnicall.Add)
		w.delegate.fail = map[string]error{"DEL portmap": errors.New("busy")}
		w.refused(s, cnicall.Del, cnicall.CodeInternal, "ai/train", "k8s-pod-network", "busy")
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		if n := w.addresses.held(); n > 0 {
			t.Error("the addresses are still held")
		}
		w.refused(s, cnicall.Check, cnicall.CodeContainer, "box1")
		w.delegate.fail = nil
		w.delegate.asked()
		w.ok(s, cnicall.Del)
		if want, got := []string{"DEL portmap eth0"}, w.delegate.asked(); !cmp.Equal(want, got) {
			t.Errorf("plugins of others: %q, want %q", got, want)
		}
		w.checkNothingLeft()
	})
}

// TestCheck finds what somebody changed.
func TestCheck(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.refused(s, cnicall.Check, cnicall.CodeContainer, "box1")
		w.ok(s, cnicall.Add)
		w.must(s.client, rtnl.LinkDelete{Name: "net3"})
		w.delegate.fail = map[string]error{"CHECK calico": errors.New("no cali1")}
		w.refused(s, cnicall.Check, cnicall.CodeInternal, "ai/train", "net3", "no cali1")
		w.ok(s, cnicall.Del)
	})
}
