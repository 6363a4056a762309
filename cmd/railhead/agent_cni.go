package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/agent"
)

// cniFlags say how the agent serves the node's container runtime.
type cniFlags struct {
	serve          string
	socket         string
	hostRoot       string
	binDir         string
	confDir        string
	program        string
	attachmentsDir string
	namespace      string
}

// namespaceFile has the namespace of the pod that this process is in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func (c *cniFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.serve, "cni", "auto", `"auto": attach this node's pods to their networks where it gives them addresses and --host-root says that it is in a container of the node; "on": always; "off": leave that to others`)
	flags.StringVar(&c.socket, "cni-socket", "/run/railhead/cni.sock", "socket that railhead-cni calls; the node must see it at the same path")
	flags.StringVar(&c.hostRoot, "host-root", "", "where the node's root directory is mounted; empty: the agent's own is the node's")
	flags.StringVar(&c.binDir, "cni-bin-dir", "/opt/cni/bin", "the node's directory of CNI plugins, to which railhead-cni is installed")
	flags.StringVar(&c.confDir, "cni-conf-dir", "/etc/cni/net.d", "the node's directory of CNI networks, to which ours is installed once the cluster's own is there")
	flags.StringVar(&c.program, "cni-program", "", "the railhead-cni to install (default: the one beside this program)")
	flags.StringVar(&c.attachmentsDir, "attachments-dir", "/var/lib/railhead/attachments", "directory for what was attached to which pod, and what is known of pods and networks, on a disk that outlives the agent; no other agent may use it")
	flags.StringVar(&c.namespace, "namespace", "", "where Railhead's ConfigMap with settings is, for --cni (default: the pod's own, else railhead-system)")
}

// check refuses what makes no sense beside --addresses.
func (c *cniFlags) check(addresses string) error {
	switch {
	case c.serve != "auto" && c.serve != "on" && c.serve != "off":
		return fmt.Errorf("--cni %q: want auto, on or off", c.serve)
	case c.serve == "on" && addresses == "off":
		return errors.New("--cni=on --addresses=off: pods are attached with their addresses, want only one of them")
	case c.serve == "off":
		return nil
	}
	for _, flag := range [...]struct{ name, path string }{
		{"cni-socket", c.socket},
		{"cni-bin-dir", c.binDir},
		{"cni-conf-dir", c.confDir},
		{"attachments-dir", c.attachmentsDir},
		{"host-root", cmp.Or(c.hostRoot, "/")},
		{"cni-program", cmp.Or(c.program, "/")},
	} {
		if !filepath.IsAbs(flag.path) {
			return fmt.Errorf("--%s %q: want an absolute path, or --cni=off", flag.name, flag.path)
		}
	}
	return nil
}

// serveCNI says how the runtime is served, if the agent is to.
func (f *agentFlags) serveCNI(config *agent.Config) error {
	c := f.cni
	switch {
	case c.serve == "off", c.serve == "auto" && (config.AddressesDir == "" || c.hostRoot == ""):
		return nil
	case config.AddressesDir == "" || config.Kubernetes == nil:
		return errors.New("--cni=on: pods are attached with their addresses, and the agent gives none: want --addresses=on and Kubernetes")
	}
	program := c.program
	if program == "" {
		own, err := os.Executable()
		if err != nil {
			return fmt.Errorf("--cni: where railhead-cni is: %w; want --cni-program", err)
		}
		program = filepath.Join(filepath.Dir(own), "railhead-cni")
	}
	own, _ := os.ReadFile(namespaceFile) // outside of a cluster there is none
	config.Namespace = cmp.Or(c.namespace, strings.TrimSpace(string(own)), "railhead-system")
	config.CNI = &agent.CNI{
		Socket: c.socket, HostRoot: c.hostRoot, BinDir: c.binDir, ConfDir: c.confDir,
		Program: program, AttachmentsDir: c.attachmentsDir, Pod: os.Getenv("POD_NAME"),
	}
	return nil
}
