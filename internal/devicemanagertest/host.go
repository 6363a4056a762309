// Package devicemanagertest is the kubelet's device manager for tests of
// device plugins. Plugins register at its socket (deviceplugin/v1beta1) and
// list their devices; the manager asks them to allocate devices when a test
// admits a pod, and answers which pod has which (podresources/v1). It starts no
// containers: what the plugin's answer asks for a container is not done.
package devicemanagertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/validation"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	resourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Where plugins and others find a kubelet's sockets, below a node's root.
const (
	PluginDir       = "var/lib/kubelet/device-plugins"
	registerSocket  = PluginDir + "/kubelet.sock"
	resourcesSocket = "var/lib/kubelet/pod-resources/kubelet.sock"
)

// Host hosts the device plugins of one node. It is safe for concurrent use.
type Host struct {
	pluginapi.UnimplementedRegistrationServer

	dir     string // where plugins have their sockets
	server  *grpc.Server
	serving sync.WaitGroup
	changed chan struct{}
	devices book

	admitting sync.Mutex // pods get devices one after another

	mu      sync.Mutex
	closed  bool
	plugins map[string]*plugin // by resource
}

// Listen makes the sockets below a node's root, in place of any that are there, and answers on them until Close.
func Listen(ctx context.Context, root string) (*Host, error) {
	h := &Host{
		dir:     filepath.Join(root, PluginDir),
		server:  grpc.NewServer(),
		changed: make(chan struct{}, 1),
		plugins: map[string]*plugin{},
	}
	pluginapi.RegisterRegistrationServer(h.server, h)
	resourcesapi.RegisterPodResourcesListerServer(h.server, &lister{devices: &h.devices})
	for _, socket := range []string{registerSocket, resourcesSocket} {
		l, err := listen(ctx, filepath.Join(root, socket))
		if err != nil {
			h.Close()
			return nil, err
		}
		h.serving.Go(func() { _ = h.server.Serve(l) }) // it ends with Close
	}
	return h, nil
}

// listen makes a socket and the directory that it is in.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return (&net.ListenConfig{}).Listen(ctx, "unix", socket)
}

// Close ends the sockets and the connections to all plugins.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	for _, p := range h.plugins {
		p.close()
	}
	h.mu.Unlock()
	h.server.Stop()
	h.serving.Wait()
}

// Changed receives a value after counts have changed; several changes may be one.
func (h *Host) Changed() <-chan struct{} { return h.changed }

// Counts are those of every resource that a plugin has registered since Listen.
func (h *Host) Counts() map[string]Count { return h.devices.counts() }

// Uses is what a pod has been given.
func (h *Host) Uses(uid string) []Use { return h.devices.uses(uid) }

// Register is what a plugin calls. The plugin must be serving already.
func (h *Host) Register(ctx context.Context, r *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	if r.GetVersion() != pluginapi.Version {
		return nil, fmt.Errorf("version %q: want %q", r.GetVersion(), pluginapi.Version)
	}
	if problems := validation.IsQualifiedName(r.GetResourceName()); len(problems) > 0 || !strings.Contains(r.GetResourceName(), "/") {
		return nil, fmt.Errorf("resource %q: want domain/name: %s", r.GetResourceName(), strings.Join(problems, "; "))
	}
	p, err := dial(ctx, filepath.Join(h.dir, r.GetEndpoint()), r.GetResourceName())
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		p.close()
		return nil, errors.New("the node is going down")
	}
	if old := h.plugins[p.resource]; old != nil {
		old.close()
	}
	h.plugins[p.resource] = p
	h.serving.Go(func() { h.follow(p) })
	return &pluginapi.Empty{}, nil
}

// follow keeps the book as a plugin says until the plugin ends or another takes its place.
func (h *Host) follow(p *plugin) {
	defer p.close()
	p.watch(func(devices []*pluginapi.Device) {
		h.ifCurrent(p, func() { h.devices.list(p.resource, devices) })
	})
	h.ifCurrent(p, func() {
		h.devices.lose(p.resource)
		delete(h.plugins, p.resource)
	})
}

// ifCurrent does something that changes counts, unless another plugin has taken the resource over.
func (h *Host) ifCurrent(p *plugin, change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.plugins[p.resource] != p || h.closed {
		return
	}
	change()
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// plugin is the one that speaks for a resource now.
func (h *Host) plugin(resource string) (*plugin, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.plugins[resource]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s: its device plugin is gone", resource)
}
