package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/fabric"
	"railhead/hack/cluster/plan"
)

// newTestCluster is one of two nodes with two rails, all of it off.
func newTestCluster(t *testing.T) *Cluster {
	t.Helper()
	p, err := plan.New(plan.Options{Nodes: 2, Rails: 2, IPv4: true})
	if err != nil {
		t.Fatal(err)
	}
	d := newDir(t)
	c := &Cluster{dir: d, plan: p, release: acquired(t, d), machines: map[string]*machine{}}
	for name, services := range map[string][]string{plan.Fabric: {"etcd", "kube-apiserver"}, "node1": {"containerd", "kubelet"}, "node2": {"containerd", "kubelet"}} {
		m := &machine{spec: box.Spec{Name: name, Dir: d.machine(name)}}
		for _, s := range services {
			m.services = append(m.services, box.Service{Name: s})
		}
		c.machines[name] = m
	}
	c.fabric = fabric.New(p, c.NetNS)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		gone(t, d)
	})
	return c
}

// serving has a cluster take orders until the returned function is called.
func serving(t *testing.T, c *Cluster) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	taken, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.serve(ctx, func() error { close(taken); return nil }) }()
	select {
	case <-taken:
	case err := <-ended:
		t.Fatal(err)
	}
	end = func() error {
		cancel()
		return returns(t, "serve", func() error { err := <-ended; ended <- err; return err })
	}
	t.Cleanup(func() { _ = end() })
	return end
}

// TestOrdersRefused gives orders that cannot be carried out, through the
// socket, and wants errors that say what can.
func TestOrdersRefused(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	serving(t, c)
	for name, test := range map[string]struct {
		order Order
		want  string
	}{
		"verb":             {Order{Verb: "explode"}, `order "explode": want one of stop, kill, pause, resume, restart, crash, boot,`},
		"no verb":          {Order{}, `order "": want one of stop,`},
		"machine":          {Order{Verb: "kill", Machine: "node3", Component: "kubelet"}, `machine "node3": want one of fabric, node1, node2`},
		"component":        {Order{Verb: "stop", Machine: "fabric", Component: "kubelet"}, `component "kubelet" of fabric: want one of etcd, kube-apiserver`},
		"component off":    {Order{Verb: "pause", Machine: "node1", Component: "kubelet"}, "node1 is off: boot it first"},
		"crash the fabric": {Order{Verb: "crash", Machine: "fabric"}, `node "fabric": want one of node1, node2`},
		"crash when off":   {Order{Verb: "crash", Machine: "node2"}, "node2 is off: boot it first"},
		"reboot when off":  {Order{Verb: "reboot", Machine: "node2"}, "node2 is off: boot it first"},
		"link":             {Order{Verb: "cut", Machine: "node1", Link: "eth1"}, `link "eth1" of node1: want one of eth0, enp11s0f0np0, enp12s0f0np0`},
		"rail":             {Order{Verb: "mend", Machine: "node1", Link: "2"}, `link "2" of node1`},
		"disk":             {Order{Verb: "fill", Machine: "fabric"}, `node "fabric": want one of node1, node2`},
		"free when off":    {Order{Verb: "free", Machine: "node1"}, "node1 is off"},
		"address":          {Order{Verb: "forward", Machine: "node1", Address: "here"}, `forward to "here": want ADDRESS:PORT`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, err := c.Dir().Give(t.Context(), test.order)
			if err == nil || !strings.Contains(err.Error(), test.want) || said != "" {
				t.Errorf("%q and error %v, want an error with %q in it", said, err, test.want)
			}
		})
	}
}

func TestOrderForward(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	serving(t, c)
	said, err := c.Dir().Give(t.Context(), Order{Verb: "forward", Machine: "node1", Address: "[fd00::1]:80"})
	if err != nil || !strings.HasPrefix(said, "127.0.0.1:") {
		t.Errorf("%q, %v, want a port of 127.0.0.1", said, err)
	}
}

// TestMalformedOrders wants what no client of this version sends to be refused.
func TestMalformedOrders(t *testing.T) {
	t.Parallel()
	d := newTestCluster(t)
	serving(t, d)
	for name, test := range map[string]struct {
		method, path, body, want string
	}{
		"unknown field": {http.MethodPost, "/orders", `{"verb":"crash","node":"node1"}`, `unknown field "node"`},
		"no JSON":       {http.MethodPost, "/orders", `crash node1`, "order: invalid character"},
		"too long":      {http.MethodPost, "/orders", `{"verb":"` + strings.Repeat("x", 2<<20) + `"}`, "too large"},
		"other method":  {http.MethodGet, "/orders", "", "405 Method Not Allowed"},
		"other path":    {http.MethodGet, "/", "", "404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := d.Dir().ask(t.Context(), test.method, test.path, []byte(test.body), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// TestOrderFields wants each field of an order to be known to the other side.
func TestOrderFields(t *testing.T) {
	t.Parallel()
	all := Order{Verb: "v", Machine: "m", Component: "c", Link: "l", Address: "a", Path: "p"}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var got Order
	if err := decoder.Decode(&got); err != nil || got != all {
		t.Errorf("%+v, %v, want %+v", got, err, all)
	}
}

func TestSocketIsRoots(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	end := serving(t, c)
	info, err := os.Stat(c.Dir().Socket())
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the socket's mode is %v, want 0600: orders are root's", got)
	}
	if err := end(); err != nil {
		t.Errorf("end: %v", err)
	}
	if _, err := os.Stat(c.Dir().Socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket after the end: %v", err)
	}
}

func TestServeNotReady(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	why := errors.New("nobody is there")
	err := returns(t, "serve", func() error { return c.serve(t.Context(), func() error { return why }) })
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
}

// TestServeWithoutFabric wants a cluster to end by itself without its network.
func TestServeWithoutFabric(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	err := returns(t, "Serve", func() error { return c.Serve(t.Context(), func() error { return nil }) })
	if !errors.Is(err, ErrFabricEnded) {
		t.Errorf("error %v, want %v", err, ErrFabricEnded)
	}
}

// TestNotRunning asks where there is no cluster, or one that has died.
func TestNotRunning(t *testing.T) {
	t.Parallel()
	none := newDir(t)
	if _, err := none.Status(t.Context()); !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), string(none)) {
		t.Errorf("error %v, want %v, with the directory", err, ErrNotRunning)
	}
	if _, err := none.Give(t.Context(), Order{Verb: "free", Machine: "node1"}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("error %v, want %v", err, ErrNotRunning)
	}
	dead := newDir(t)
	write(t, dead.DriverLog(), "1\n2\n3\n4\n5\ncluster: the fabric has ended\n")
	_, err := dead.Status(t.Context())
	if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "driver.log ends with:\n2\n3\n4\n5\ncluster: the fabric has ended") {
		t.Errorf("error %v, want %v, and the last words of the driver", err, ErrNotRunning)
	}
}

func TestHungUp(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	l, err := c.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if conn, err := l.Accept(); err == nil {
			_ = conn.Close()
		}
		_ = l.Close()
	}()
	if _, err := c.Dir().Give(t.Context(), Order{Verb: "free"}); !errors.Is(err, errHungUp) {
		t.Errorf("error %v, want %v", err, errHungUp)
	}
}
