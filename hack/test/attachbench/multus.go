package attachbench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/binaries"
)

// multus is Multus with a daemon, as it is installed by default: a runtime of
// networks that knows pods and networks before it is asked for them, and executes
// the plugins of eth0 and of all rails. Its other form, where each call starts a
// program that asks the API server for all that, takes as long or longer.
//
// Where it can be made faster than it is by default, it is: it writes no log, and
// needs no chroot for plugins.
type multus struct {
	called
	pid int // of the daemon
}

// How long the daemon has to come and to go.
const (
	multusStart = 30 * time.Second
	multusEnd   = 5 * time.Second
)

// newMultus starts the daemon in the calling process's namespaces, with an API
// server of its own, until stop is called. Plugins are in bin.
func newMultus(ctx context.Context, tb testing.TB, set *binaries.Set, pods []*pod, c class) (m *multus, stop func()) {
	tb.Helper()
	dir := tb.TempDir()
	chains, err := chainsOf(dir, c)
	if err != nil {
		tb.Fatal(err)
	}
	eth0, err := eth0Network(dir)
	if err != nil {
		tb.Fatal(err)
	}
	api := httptest.NewUnstartedServer(newMultusAPI(pods, string(eth0.Bytes), chains).handler())
	api.EnableHTTP2 = true
	api.StartTLS()
	tb.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	daemon, err := startMultus(ctx, dir, set, api)
	if err != nil {
		tb.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := daemon.end(); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(stop)
	config, err := daemon.config(filepath.Join(dir, "net.d", "00-multus.conf"))
	if err != nil {
		tb.Fatal(err)
	}
	made, err := newCalled(config, dir, set.Dir(), set.CNIDir())
	if err != nil {
		tb.Fatal(err)
	}
	return &multus{made, daemon.pid}, stop
}

// chainsOf are the rails' configurations, with host-local's files below dir.
func chainsOf(dir string, c class) ([]string, error) {
	var all []string
	for i := range rails {
		text, err := json.Marshal(chain(filepath.Join(dir, "host-local"), i, c))
		if err != nil {
			return nil, err
		}
		all = append(all, string(text))
	}
	return all, nil
}

// multusDaemon is one run of it.
type multusDaemon struct {
	pid      int
	stop     context.CancelFunc
	done     chan error // has its end
	log      string     // a file
	unshadow func() error
}

// startMultus has the daemon find the cluster's own network in a directory and
// the API server where pods find it.
func startMultus(ctx context.Context, dir string, set *binaries.Set, api *httptest.Server) (*multusDaemon, error) {
	program, err := set.Path("multus-daemon")
	if err != nil {
		return nil, err
	}
	config, err := writeMultusFiles(dir, set.CNIDir())
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(api.URL)
	if err != nil {
		return nil, err
	}
	unshadow, err := serviceAccount(api)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(ctx, program, "-config", config)
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+at.Hostname(), "KUBERNETES_SERVICE_PORT="+at.Port(), "MULTUS_NODE_NAME=node1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = multusEnd
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d := &multusDaemon{stop: cancel, done: make(chan error, 1), log: filepath.Join(dir, "multus.log"), unshadow: unshadow}
	if err := d.run(cmd); err != nil {
		cancel()
		return nil, errors.Join(err, unshadow())
	}
	return d, nil
}

// run starts the daemon and waits for its end on one thread, with which it ends.
func (d *multusDaemon) run(cmd *exec.Cmd) error {
	log, err := os.Create(d.log)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	started := make(chan error)
	go func() {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			d.done <- cmd.Wait()
		}
	}()
	err = errors.Join(<-started, log.Close())
	if cmd.Process != nil {
		d.pid = cmd.Process.Pid
	}
	return err
}

// config is what the daemon writes for container runtimes once it serves: one
// plugin, which becomes a list as runtimes make one.
func (d *multusDaemon) config(file string) ([]byte, error) {
	for deadline := time.Now().Add(multusStart); ; time.Sleep(10 * time.Millisecond) {
		plugin, err := os.ReadFile(file)
		if err == nil && json.Valid(plugin) {
			return json.Marshal(object{"cniVersion": "1.0.0", "name": "multus-cni-network", "plugins": []json.RawMessage{plugin}})
		}
		select {
		case ended := <-d.done:
			d.done <- ended
			return nil, errors.New("multus-daemon ended before it served")
		default:
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("multus-daemon does not serve after %s: no %s", multusStart, file)
		}
	}
}

// end ends the daemon and takes away what it needed. The error has what it said.
func (d *multusDaemon) end() error {
	d.stop()
	err := <-d.done
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	if err != nil {
		said, readErr := os.ReadFile(d.log)
		err = errors.Join(fmt.Errorf("multus-daemon: %w\n%s", err, said[max(0, len(said)-2000):]), readErr)
	}
	return errors.Join(err, d.unshadow())
}

// writeMultusFiles writes the cluster's own network and the daemon's settings, and
// returns the path of these.
func writeMultusFiles(dir, bin string) (string, error) {
	networks := filepath.Join(dir, "net.d")
	eth0, err := eth0Network(dir)
	if err != nil {
		return "", err
	}
	socket := filepath.Join(dir, "multus") // a directory that it removes first
	config := filepath.Join(dir, "daemon-config.json")
	text, err := json.Marshal(object{
		// From a file it would lose settings on DEL, so that eth0 stays (v4.2.2).
		"clusterNetwork": podsNetwork, "multusNamespace": namespace,
		"cniVersion": "1.0.0", "logLevel": "error", "logToStderr": true, "binDir": bin,
		"cniDir": filepath.Join(dir, "multus-cache"), "cniConfigDir": networks, "confDir": networks,
		"multusAutoconfigDir": networks, "multusConfigFile": "auto", "socketDir": socket, "daemonSocketDir": socket,
	})
	return config, errors.Join(err, os.Mkdir(networks, 0o700),
		os.WriteFile(filepath.Join(networks, "10-pods.conflist"), eth0.Bytes, 0o600),
		os.WriteFile(config, text, 0o600))
}

// serviceAccount puts an account for the API server where pods have theirs, in a
// file system of its own, since nothing of the machine's is to change. The calling
// process is in a mount namespace of its own. The returned function undoes it.
func serviceAccount(api *httptest.Server) (undo func() error, err error) {
	const run = "/var/run"
	if err := unix.Mount("multus", run, "tmpfs", 0, "size=1m"); err != nil {
		return nil, fmt.Errorf("mount on %s: %w", run, err)
	}
	undo = func() error { return unix.Unmount(run, unix.MNT_DETACH) }
	dir := run + "/secrets/kubernetes.io/serviceaccount"
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	err = errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "token"), []byte("bench"), 0o600),
		os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600))
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// cpuTime is what the daemon and the plugins that it waited for have used.
func (m *multus) cpuTime() (time.Duration, error) {
	const first, count = 11, 4 // utime, stime, cutime, cstime, behind the name
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < first+count {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields behind the name", m.pid, len(fields))
	}
	var total time.Duration
	for _, f := range fields[first : first+count] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", m.pid, err)
		}
		total += time.Duration(ticks) * (time.Second / 100)
	}
	return total, nil
}
