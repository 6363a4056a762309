package driver

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/component"
	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/standin"
)

// The service of the fabric that stands in for nodes, and this program there.
const (
	standIns    = "standins"
	ownProgram  = "/opt/railhead/driver"
	maxStandIns = standin.MaxNodes
)

// Init is for the first statement of main, or of TestMain: it takes over when
// this program was started as the first process of a machine, or as stand-ins
// for nodes. Else it returns.
func Init() {
	box.Init()
	if len(os.Args) < 2 || os.Args[0] != ownProgram {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cmd := standin.Command()
	cmd.SetArgs(os.Args[2:])
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// addStandIns gives the fabric what it needs to stand in for nodes.
func (c *Cluster) addStandIns() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	fabric := &c.machines[plan.Fabric].spec
	fabric.Binds = append(fabric.Binds,
		box.Bind{Source: program, Target: ownProgram},
		box.Bind{Source: c.programs.CNIDir(), Target: component.CNIPlugins})
	return nil
}

// startStandIns starts nodes that run pods as bare network namespaces.
func (c *Cluster) startStandIns(ctx context.Context, nodes int) error {
	b, err := c.on(plan.Fabric)
	if err != nil {
		return err
	}
	service := box.Service{
		Name: standIns,
		Args: []string{
			ownProgram, standIns,
			"--nodes", strconv.Itoa(nodes),
			"--kubeconfig", component.AdminKubeconfig,
			"--cni-bin", component.CNIPlugins,
			fmt.Sprintf("--ipv4=%t", c.plan.Options.IPv4),
			fmt.Sprintf("--ipv6=%t", c.plan.Options.IPv6),
		},
		Restart: true,
	}
	// Nobody but Up has the cluster yet.
	fabric := c.machines[plan.Fabric]
	fabric.services = append(fabric.services, service)
	return c.startService(ctx, b, plan.Fabric, service)
}
