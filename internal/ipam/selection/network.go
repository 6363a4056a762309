package selection

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// ipamType is the type of an IPAM configuration whose addresses are of pools.
const ipamType = "spiderpool"

// multusNamespace is where Multus looks for the network of a pod's eth0, where
// that has no namespace.
const multusNamespace = "kube-system"

// ipamConfig is the IPAM of a CNI plugin.
type ipamConfig struct {
	Type              string   `json:"type"`
	DefaultIPv4       []string `json:"default_ipv4_ippool"`
	DefaultIPv6       []string `json:"default_ipv6_ippool"`
	MatchMasterSubnet bool     `json:"match_master_subnet"`
	CleanGateway      bool     `json:"clean_gateway"`
}

// ipamKeys are those that Spiderpool 1.2 reads. How it logs and where its agent is,
// we leave alone.
func ipamKeys() []string {
	return []string{
		"type", "default_ipv4_ippool", "default_ipv6_ippool", "match_master_subnet", "clean_gateway", "ipam_unix_socket_path",
		"log_level", "log_file_path", "log_file_max_size", "log_file_max_age", "log_file_max_count",
	}
}

// ipamOf are the IPAM of a configuration and of its plugins, by what T takes of each.
type ipamOf[T any] struct {
	IPAM    T `json:"ipam"`
	Plugins []struct {
		IPAM T `json:"ipam"`
	} `json:"plugins"`
}

// reviewIPAM wants no key that nobody reads: addresses would be of other pools than
// whoever wrote it believes.
func reviewIPAM(ipam map[string]json.RawMessage) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(ipam)) {
		if !slices.Contains(ipamKeys(), strings.ToLower(key)) { // as package json takes them
			errs = append(errs, fmt.Errorf("ipam.%s: unknown key: did you mean %q? There are %s", key, policy.Nearest(key, ipamKeys())[0], strings.Join(ipamKeys(), ", ")))
		}
	}
	return errors.Join(errs...)
}

// Configure takes what the configuration of a NetworkAttachmentDefinition says of
// addresses, whoever made that. Of several plugins the first with an IPAM counts.
func (i *Interface) Configure(config string) error {
	var conf ipamOf[ipamConfig]
	if err := json.Unmarshal([]byte(config), &conf); err != nil {
		return fmt.Errorf(`the configuration of NetworkAttachmentDefinition %s cannot be read: %s: want "ipam": {"type": "spiderpool", "default_ipv4_ippool": ["name"]} in a plugin`, i.Network, annotation.JSONError(err))
	}
	var written ipamOf[map[string]json.RawMessage]
	if err := json.Unmarshal([]byte(config), &written); err != nil {
		return fmt.Errorf("the configuration of NetworkAttachmentDefinition %s cannot be read: %w", i.Network, err)
	}
	c, keys := conf.IPAM, written.IPAM
	for n := 0; c.Type == "" && n < len(conf.Plugins); n++ {
		c, keys = conf.Plugins[n].IPAM, written.Plugins[n].IPAM
	}
	if i.IPAM = c.Type == ipamType; !i.IPAM {
		return nil
	}
	if err := reviewIPAM(keys); err != nil {
		return fmt.Errorf("NetworkAttachmentDefinition %s: %w", i.Network, err)
	}
	i.Pools = policy.Pools{IPv4: c.DefaultIPv4, IPv6: c.DefaultIPv6, MatchMasterSubnet: c.MatchMasterSubnet}
	i.CleanGateway = c.CleanGateway
	return nil
}

// InterfacesOf are the interfaces of a pod by its annotations: eth0, and one for
// each network, by the name that the pod gives it or else net1, net2 and so on.
// find answers the configuration of a NetworkAttachmentDefinition; where it
// cannot, the interface has its error. What each stands on is for the caller to
// add. The error is about annotations that cannot be read; networks that can be
// are there for people to see, and a pod is not to be served by them: one that is
// left out counts for none of the names of those behind it.
func InterfacesOf(pod *metav1.ObjectMeta, find func(types.NamespacedName) (config string, err error)) ([]Interface, error) {
	interfaces := []Interface{{Name: "eth0"}}
	var errs []error
	if text, ok := pod.Annotations[cniv1.AnnotationDefaultNetwork]; ok {
		a, bad := annotation.DefaultNetwork(annotationsPath().Key(cniv1.AnnotationDefaultNetwork), text)
		if len(bad) > 0 {
			errs = append(errs, bad.ToAggregate())
		} else {
			interfaces[0].Network = types.NamespacedName{Namespace: cmp.Or(a.Namespace, multusNamespace), Name: a.Name}
		}
	}
	if text, ok := pod.Annotations[cniv1.AnnotationNetworks]; ok {
		attachments, bad := annotation.Networks(annotationsPath().Key(cniv1.AnnotationNetworks), text)
		if len(bad) > 0 {
			errs = append(errs, bad.ToAggregate())
		}
		for n, a := range attachments {
			interfaces = append(interfaces, Interface{
				Name:    cmp.Or(a.Interface, "net"+strconv.Itoa(n+1)),
				Network: types.NamespacedName{Namespace: cmp.Or(a.Namespace, pod.Namespace), Name: a.Name},
				IPs:     a.IPs,
			})
		}
	}
	for i := range interfaces {
		interfaces[i].Err = interfaces[i].look(find)
	}
	return interfaces, errors.Join(errs...)
}

// look takes what the network of an interface says.
func (i *Interface) look(find func(types.NamespacedName) (string, error)) error {
	if i.Network.Name == "" {
		return nil
	}
	config, err := find(i.Network)
	if err != nil {
		return err
	}
	if config == "" {
		return fmt.Errorf("NetworkAttachmentDefinition %s has no configuration: it is looked up on the node, and whether its addresses are of pools is not known", i.Network)
	}
	return i.Configure(config)
}
