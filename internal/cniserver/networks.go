package cniserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/containernetworking/cni/libcni"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/plugin"
	"railhead/internal/attach/routing"
	"railhead/internal/cnicall"
	"railhead/internal/npwg"
)

// network is one network of a pod on its way to be attached.
type network struct {
	selected npwg.Selected
	chain    npwg.Chain
	parts    plugin.Parts
	ipam     plugin.IPAM // of the plugin that makes the interface
	device   string      // ID of the device to attach, or ""

	// made is what is planned of the interface: all of it where Parts.Main is ours,
	// what it is routed by where it is another's.
	made   attach.Interface
	result *types100.Result // of what was done so far; nil: nothing was
}

// isNative says that the interface is ours to make.
func (n *network) isNative() bool { return n.parts.Main >= 0 }

// errorf is an error about the network.
func (n *network) errorf(err error) error {
	return fmt.Errorf("network %s, interface %s: %w", n.name(), n.selected.Interface, err)
}

func (n *network) name() string {
	if n.selected.Name == "" {
		return n.chain.Name
	}
	return n.selected.String()
}

// hasOwn says whether a pod asks for any network of its own.
func hasOwn(pod *metav1.PartialObjectMetadata) bool {
	_, networks := pod.Annotations[cniv1.AnnotationNetworks]
	_, first := pod.Annotations[cniv1.AnnotationDefaultNetwork]
	return networks || first
}

// readMost bounds what the API server is asked for before a pod is attached: what a
// node knows, it is not asked for at all.
const readMost = 10 * time.Second

// networksOf are a pod's, read and checked: whatever can be known to be wrong
// before anything is attached is an error here, all of it.
func (s *Server) networksOf(ctx context.Context, c call, pod *metav1.PartialObjectMetadata) ([]*network, error) {
	config := s.config.Selection
	config.Interface = c.IfName
	selected, err := npwg.Networks(npwg.Pod{Namespace: pod.Namespace, Name: pod.Name, Annotations: pod.Annotations}, config)
	if err != nil {
		return nil, coded(cnicall.CodeConfig, podNamed{err})
	}
	reading, stop := context.WithTimeout(ctx, readMost)
	defer stop()
	read := onceEach(s.config.ReadNAD)
	var (
		list []*network
		errs []error
	)
	for _, one := range selected {
		n, err := s.network(reading, c, one, read)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, n)
	}
	if err := join(errs); err != nil {
		return nil, configured(err)
	}
	if err := s.giveDevices(pod, list); err != nil {
		return nil, coded(cnicall.CodeConfig, err)
	}
	return list, s.build(pod, list)
}

// readNAD reads a NetworkAttachmentDefinition.
type readNAD = func(ctx context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error)

// onceEach reads each NetworkAttachmentDefinition once, also one that is not there:
// a pod may have many interfaces of one network.
func onceEach(read readNAD) readNAD {
	type answer struct {
		nad *cniv1.NetworkAttachmentDefinition
		err error
	}
	known := map[types.NamespacedName]answer{}
	return func(ctx context.Context, namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		a, ok := known[key]
		if !ok {
			a.nad, a.err = read(ctx, namespace, name)
			known[key] = a
		}
		return a.nad, a.err
	}
}

// network reads one network.
func (s *Server) network(ctx context.Context, c call, one npwg.Selected, read readNAD) (*network, error) {
	n := &network{selected: one}
	var err error
	if one.Name == "" {
		n.chain, err = s.clusterChain(c)
	} else {
		n.chain, err = s.chainOf(ctx, one, read)
	}
	if err != nil {
		return nil, err
	}
	if err := npwg.Check(one, n.chain); err != nil {
		return nil, err
	}
	if n.parts, err = plugin.Split(n.chain); err != nil {
		return nil, fmt.Errorf("network %s: %w", n.name(), err)
	}
	if at := max(n.parts.Main, 0); n.isNative() {
		if n.ipam, err = plugin.IPAMOf(n.chain.Plugins[at]); err != nil {
			return nil, fmt.Errorf("network %s: %w", n.name(), err)
		}
	} else {
		n.ipam = plugin.IPAM{Type: n.chain.Plugins[n.parts.After[0]].IPAM}
		n.ipam.Native = n.ipam.Type == pluginIPAM
	}
	return n, nil
}

// chainOf is the chain of a NetworkAttachmentDefinition, which is read as said.
func (s *Server) chainOf(ctx context.Context, one npwg.Selected, read readNAD) (npwg.Chain, error) {
	nad, err := read(ctx, one.Namespace, one.Name)
	if err != nil {
		err = fmt.Errorf("%s: %w", one.At, err)
		if !apierrors.IsNotFound(err) {
			err = coded(cnicall.CodeTryAgain, err)
		}
		return npwg.Chain{}, err
	}
	var files []npwg.File
	if nad.Spec.Config == "" && s.config.Files != nil {
		found, err := s.config.Files()
		if err != nil {
			s.log.Warn("not all CNI configurations of the node can be read", "error", err)
		}
		for _, f := range found {
			files = append(files, npwg.File{Path: f.Path, Content: f.Content})
		}
	}
	return npwg.ChainOf(one, nad, files)
}

// clusterChain is the chain of the cluster's own network, as a call names it.
func (s *Server) clusterChain(c call) (npwg.Chain, error) {
	own := c.conf.ClusterNetwork
	if own.File == "" {
		return npwg.Chain{}, coded(cnicall.CodeConfig, fmt.Errorf("network %s: clusterNetwork.file: missing: want the file of the cluster's own network", c.conf.Name))
	}
	list, err := s.config.ClusterNetwork(own.File, own.Name)
	if err != nil {
		return npwg.Chain{}, coded(cnicall.CodeTryAgain, fmt.Errorf("the cluster's own network %s: %w", own.Name, err))
	}
	text, err := textOf(list)
	if err != nil {
		return npwg.Chain{}, fmt.Errorf("the cluster's own network %s: %w", own.Name, err)
	}
	return npwg.ChainOf(npwg.Selected{Default: true}, nil, []npwg.File{{Path: own.File, Content: text}})
}

// textOf is a list of plugins with those that other files added to it.
func textOf(list *libcni.NetworkConfigList) ([]byte, error) {
	plugins := make([]json.RawMessage, len(list.Plugins))
	for i, p := range list.Plugins {
		plugins[i] = p.Bytes
	}
	text := map[string]any{"name": list.Name, "cniVersion": list.CNIVersion, "plugins": plugins}
	if list.DisableCheck {
		text["disableCheck"] = true
	}
	if list.DisableGC {
		text["disableGC"] = true
	}
	return json.Marshal(text)
}

// build has the native plugins of all networks say what they make.
func (s *Server) build(pod *metav1.PartialObjectMetadata, list []*network) error {
	if !hasNative(list) {
		return nil
	}
	spec, status, err := s.config.Cluster.Coordinator()
	if err != nil && !apierrors.IsNotFound(err) && isCoordinated(list) { // without one, defaults count
		return coded(cnicall.CodeTryAgain, err)
	}
	in := plugin.Input{Cluster: spec, Status: status, DefaultRouteNIC: defaultRouteNIC(pod, list)}
	var errs []error
	for i, n := range list {
		in.Chain, in.Selected, in.Rail, in.DeviceID = n.chain, n.selected, max(i-1, 0), n.device
		if n.made, err = plugin.Interface(in); err != nil {
			errs = append(errs, err)
			continue
		}
		if n.selected.HasDefaultRoute && n.made.Coordinator == nil {
			errs = append(errs, n.coordinate(in))
		}
	}
	return coded(cnicall.CodeConfig, join(errs))
}

// coordinate gives a network a coordinator that has none in its chain: the pod
// wants its default route there, and somebody has to decide that for all.
func (n *network) coordinate(in plugin.Input) error {
	o, err := routing.Merge(routing.Sources{
		Cluster: in.Cluster, Status: in.Status, DefaultRouteNIC: in.DefaultRouteNIC,
		Element: json.RawMessage(`{"type":"coordinator"}`),
	})
	if err != nil {
		return fmt.Errorf("%s.default-route: %w", n.selected.At, err)
	}
	n.made.Coordinator = &o
	return nil
}

// isCoordinated says whether any network has a coordinator.
func isCoordinated(list []*network) bool {
	return slices.ContainsFunc(list, func(n *network) bool {
		return n.selected.HasDefaultRoute || slices.ContainsFunc(n.chain.Plugins, func(p npwg.Plugin) bool { return p.Type == pluginCoordinator })
	})
}

// hasNative says whether anything is ours to do but to run others' plugins.
func hasNative(list []*network) bool {
	for _, n := range list {
		if len(n.parts.Native) > 0 || n.selected.HasDefaultRoute {
			return true
		}
	}
	return false
}

// defaultRouteNIC is the interface that the pod wants its default route over: by
// its annotation, else by the default-route of a network that it lists.
func defaultRouteNIC(pod *metav1.PartialObjectMetadata, list []*network) string {
	if nic := pod.Annotations[v2beta1.AnnotationDefaultRouteNIC]; nic != "" {
		return nic
	}
	for _, n := range list {
		if n.selected.HasDefaultRoute {
			return n.selected.Interface
		}
	}
	return ""
}

// giveDevices says which device each network has.
func (s *Server) giveDevices(pod *metav1.PartialObjectMetadata, list []*network) error {
	var allocated map[string][]string
	wants := func(n *network) bool { return n.chain.Resource != "" || n.selected.DeviceID != "" }
	if s.config.Allocated != nil && slices.ContainsFunc(list, wants) {
		allocated = s.config.Allocated(string(pod.UID))
	}
	selected, chains := make([]npwg.Selected, len(list)), make([]npwg.Chain, len(list))
	for i, n := range list {
		selected[i], chains[i] = n.selected, n.chain
	}
	devices, err := npwg.Devices(selected, chains, allocated)
	if err != nil {
		return err
	}
	for i, n := range list {
		n.device = devices[i]
	}
	return nil
}
