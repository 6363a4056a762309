package standin

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"text/template"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"railhead/internal/kernel/netns"
)

// Directories of a node below its root, as container runtimes have them.
const (
	podNamespaces = "run/netns"
	cniCache      = "var/lib/cni"
	cniLeases     = "run/cni/networks"
)

// pluginPatience is how long the plugins of a list may take together.
const pluginPatience = 2 * time.Minute

// defaultConflist is the network of pods of a node of the local cluster, without host ports.
const defaultConflist = `{
  "cniVersion": "1.0.0",
  "name": "railhead-standin",
  "plugins": [{
    "type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true,
    "ipam": {
      "type": "host-local", "dataDir": "{{.Root}}/` + cniLeases + `",
      "ranges": [{{range $i, $p := .Pods}}{{if $i}}, {{end}}[{"subnet": "{{$p}}"}]{{end}}]
    }
  }]
}
`

// conflistTemplate is what the options ask for.
func (o *Options) conflistTemplate() (*template.Template, error) {
	text := defaultConflist
	if o.Conflist != "" {
		raw, err := os.ReadFile(o.Conflist)
		if err != nil {
			return nil, fmt.Errorf("conflist: %w", err)
		}
		text = string(raw)
	}
	t, err := template.New("conflist").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("conflist: %w", err)
	}
	return t, nil
}

// network is the network of one node's pods.
type network struct {
	list *libcni.NetworkConfigList
	cni  *libcni.CNIConfig
}

// newNetwork reads the conflist as it is for a node.
func newNetwork(t *template.Template, n Node, plugins []string) (*network, error) {
	var text bytes.Buffer
	if err := t.Execute(&text, n); err != nil {
		return nil, fmt.Errorf("conflist of %s: %w", n.Name, err)
	}
	if !json.Valid(text.Bytes()) {
		return nil, fmt.Errorf("conflist of %s: not JSON:\n%s", n.Name, text.Bytes())
	}
	list, err := libcni.NetworkConfFromBytes(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("conflist of %s: %w", n.Name, err)
	}
	return &network{list: list, cni: libcni.NewCNIConfigWithCacheDir(plugins, n.path(cniCache), newExec())}, nil
}

// newExec is libcni's own way to run plugins, which it would otherwise make at first use, and without a lock.
func newExec() invoke.Exec {
	return &invoke.DefaultExec{RawExec: &invoke.RawExec{}, PluginDecoder: version.PluginDecoder{}}
}

// sandbox is the network namespace of a pod as container runtimes call it.
type sandbox struct {
	id   string // of the container that would hold it
	path string
	ips  []netip.Addr
}

// newSandboxID is 64 hexadecimal digits, as container runtimes have them.
func newSandboxID() string {
	var id [32]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}

// attach asks the plugins to connect a pod, on a thread in the node's namespace, and returns the pod's addresses.
func (w *network) attach(ctx context.Context, ns *netns.NS, s sandbox, p *pod) ([]netip.Addr, error) {
	var ips []netip.Addr
	err := w.call(ctx, ns, func(ctx context.Context) error {
		result, err := w.cni.AddNetworkList(ctx, w.list, runtimeConf(s, p))
		if err != nil {
			return err
		}
		ips, err = podAddresses(result)
		return err
	})
	return ips, err
}

// detach asks the plugins to let a pod go.
func (w *network) detach(ctx context.Context, ns *netns.NS, s sandbox, p *pod) error {
	return w.call(ctx, ns, func(ctx context.Context) error {
		return w.cni.DelNetworkList(ctx, w.list, runtimeConf(s, p))
	})
}

// call runs plugins. A program that is started inherits the namespace of the thread that starts it.
func (w *network) call(ctx context.Context, ns *netns.NS, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pluginPatience)
	defer cancel()
	return ns.Do(func() error { return run(ctx) })
}

// runtimeConf is what containerd tells plugins of a pod.
func runtimeConf(s sandbox, p *pod) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{
		ContainerID: s.id,
		NetNS:       s.path,
		IfName:      eth0,
		Args: [][2]string{
			{"IgnoreUnknown", "1"},
			{"K8S_POD_NAMESPACE", p.namespace},
			{"K8S_POD_NAME", p.name},
			{"K8S_POD_INFRA_CONTAINER_ID", s.id},
			{"K8S_POD_UID", string(p.uid)},
		},
		CapabilityArgs: map[string]any{"io.kubernetes.cri.pod-annotations": p.annotations},
	}
}

// podAddresses are the addresses of the pod's eth0: those that the result ties to it, or to no interface.
func podAddresses(result types.Result) ([]netip.Addr, error) {
	r, err := types100.NewResultFromResult(result)
	if err != nil {
		return nil, fmt.Errorf("result of the plugins: %w", err)
	}
	var ips []netip.Addr
	for _, ip := range r.IPs {
		if i := ip.Interface; i != nil && *i >= 0 && *i < len(r.Interfaces) {
			if on := r.Interfaces[*i]; on.Sandbox == "" || on.Name != eth0 {
				continue
			}
		}
		a, ok := netip.AddrFromSlice(ip.Address.IP)
		if !ok {
			return nil, fmt.Errorf("result of the plugins: address %q: not an IP address", ip.Address.IP)
		}
		ips = append(ips, a.Unmap())
	}
	if len(ips) == 0 {
		return nil, fmt.Errorf("result of the plugins: no address of %s", eth0)
	}
	return ips, nil
}
