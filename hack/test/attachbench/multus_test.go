package attachbench

import (
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
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/binaries"
	"railhead/hack/program"
)

// multus is Multus with a daemon, as it is installed by default: a runtime of
// networks that knows pods and networks before it is asked for them, and executes
// the plugins of eth0 and of all rails. Its other form, where each call starts a
// program that asks the API server for all that, takes as long or longer.
//
// Where it can be made faster than it is by default, it is: it writes no log, and
// needs no chroot for plugins.
type multus struct{ called }

// How long the daemon has to come and to go.
const (
	multusStart = 2 * time.Minute
	multusEnd   = 30 * time.Second
)

// newMultus starts the daemon with an API server of its own.
func newMultus(b *testing.B, set *binaries.Set, pods ...*pod) multus {
	b.Helper()
	if !isNightly() {
		b.Skip("needs Multus, which takes minutes to build: set RAILHEAD_NIGHTLY=1")
	}
	dir := b.TempDir()
	api := httptest.NewUnstartedServer(newMultusAPI(pods, dir).handler())
	api.EnableHTTP2 = true
	api.StartTLS()
	b.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	daemon, err := startMultus(b.Context(), dir, set, api)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := daemon.end(); err != nil {
			b.Error(err)
		}
	})
	config, err := daemon.config(filepath.Join(dir, "net.d", "00-multus.conf"))
	if err != nil {
		b.Fatal(err)
	}
	made, err := newCalled(config, dir, set.Dir(), set.CNIDir())
	if err != nil {
		b.Fatal(err)
	}
	return multus{made}
}

// multusDaemon is one run of it.
type multusDaemon struct {
	stop     context.CancelFunc
	done     chan error // has its end
	log      string     // a file
	unshadow func() error
}

// startMultus has the daemon find the cluster's own network in a directory and
// the API server where pods find it.
func startMultus(ctx context.Context, dir string, set *binaries.Set, api *httptest.Server) (*multusDaemon, error) {
	daemon, err := set.Path("multus-daemon")
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
	cmd := program.Command(ctx, daemon, "-config", config)
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+at.Hostname(), "KUBERNETES_SERVICE_PORT="+at.Port(), "MULTUS_NODE_NAME=node1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = multusEnd
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
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			d.done <- cmd.Wait()
		}
	}()
	return errors.Join(<-started, log.Close())
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
	cluster, err := json.Marshal(eth0(dir))
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
		os.WriteFile(filepath.Join(networks, "10-pods.conflist"), cluster, 0o600),
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
