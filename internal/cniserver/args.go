package cniserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"railhead/internal/cnicall"
)

// podArgs are what CNI_ARGS say of the pod.
type podArgs struct {
	namespace, name string
	uid             string // "" of runtimes that do not say it
	sandbox         string // the container that holds the namespace
}

// parseArgs reads CNI_ARGS: KEY=value;KEY=value. Keys that are not the
// kubelet's are somebody else's.
func parseArgs(text string) (podArgs, error) {
	var p podArgs
	for pair := range strings.SplitSeq(text, ";") {
		if pair == "" {
			continue
		}
		key, value, is := strings.Cut(pair, "=")
		if !is {
			return podArgs{}, coded(cnicall.CodeEnvironment, fmt.Errorf("CNI_ARGS: %q: want KEY=value, with ; between pairs", pair))
		}
		switch key {
		case "K8S_POD_NAMESPACE":
			p.namespace = value
		case "K8S_POD_NAME":
			p.name = value
		case "K8S_POD_UID":
			p.uid = value
		case "K8S_POD_INFRA_CONTAINER_ID":
			p.sandbox = value
		}
	}
	return p, nil
}

// named returns an error where a pod is needed and not named.
func (p podArgs) named() error {
	var missing []string
	if p.namespace == "" {
		missing = append(missing, "K8S_POD_NAMESPACE")
	}
	if p.name == "" {
		missing = append(missing, "K8S_POD_NAME")
	}
	if len(missing) == 0 {
		return nil
	}
	return coded(cnicall.CodeEnvironment, fmt.Errorf("CNI_ARGS: %s: missing: want the pod's, as the runtime of a kubelet gives them", strings.Join(missing, ", ")))
}

// call is one CNI call that was read.
type call struct {
	cnicall.Request

	pod  podArgs
	conf conf
}

// conf is what the agent itself reads of a call's configuration.
type conf struct {
	CNIVersion     string                     `json:"cniVersion"`
	Name           string                     `json:"name"`
	Type           string                     `json:"type"`
	ClusterNetwork clusterNetwork             `json:"clusterNetwork"`
	RuntimeConfig  map[string]json.RawMessage `json:"runtimeConfig"`
	PrevResult     json.RawMessage            `json:"prevResult"`
	Valid          json.RawMessage            `json:"cni.dev/valid-attachments"`
	Attachments    json.RawMessage            `json:"cni.dev/attachments"` // as it stood in the specification once
}

// clusterNetwork is the cluster's own network as our configuration names it.
type clusterNetwork struct {
	File string `json:"file"`
	Name string `json:"name"`
}

// Plugins of our program.
const (
	ownPlugin         = "railhead-cni"
	pluginIPAM        = "spiderpool"
	pluginCoordinator = "coordinator"
	pluginIfacer      = "ifacer"
)

// parse reads a call.
func parse(r cnicall.Request) (call, error) {
	c := call{Request: r}
	var err error
	if c.pod, err = parseArgs(r.Args); err != nil && r.Command != cnicall.Del {
		return c, err
	}
	if len(r.Config) > 0 {
		if err := json.Unmarshal(r.Config, &c.conf); err != nil {
			return c, coded(cnicall.CodeDecode, fmt.Errorf("network configuration: %w", err))
		}
	}
	if c.Plugin == "" {
		c.Plugin = c.conf.Type
	}
	return c, nil
}

// valid are the attachments that the runtime still has; nil where it says null,
// which libcni makes of a list that nobody began.
func (c call) valid() (list []types.GCAttachment, err error) {
	const field = "cni.dev/valid-attachments"
	text := c.conf.Valid
	if text == nil {
		text = c.conf.Attachments
	}
	if text == nil {
		return nil, coded(cnicall.CodeConfig, errors.New(field+": missing: GC removes what is not listed there"))
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, coded(cnicall.CodeDecode, fmt.Errorf("%s: %w", field, err))
	}
	return list, nil
}
