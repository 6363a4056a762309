package attachbench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
	"railhead/internal/attach/routing"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/netns"
)

// ours plans, records, applies and asks, as the agent does for a pod whose
// addresses it knows.
type ours struct {
	attacher *attach.Attacher
	records  *record.Store
	prober   *probe.Prober
	options  *routing.Options
}

func newOurs(b *testing.B) *ours {
	b.Helper()
	o := &ours{prober: &probe.Prober{}}
	var err error
	if o.attacher, err = attach.New(attach.Config{}); err != nil {
		b.Fatal(err)
	}
	disk, err := journal.OS(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	if o.records, err = record.Open(disk, record.File); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		o.prober.Wait()
		if err := errors.Join(o.records.Close(), disk.Close(), o.attacher.Close()); err != nil {
			b.Error(err)
		}
	})
	merged, err := routing.Merge(routing.Sources{Cluster: v2beta1.CoordinatorSpec{Mode: new(v2beta1.ModeAuto), DetectGateway: new(true)}})
	if err != nil {
		b.Fatal(err)
	}
	o.options = &merged
	return o
}

// pod is what is asked for.
func (o *ours) pod(p *pod) attach.Pod {
	asked := attach.Pod{
		ContainerID: p.id, NetNS: p.path, NodeAddresses: []netip.Addr{podGateway()},
		Peer: routing.Peer{Name: p.veth(), MAC: p.peer},
		Interfaces: []attach.Interface{{Interface: routing.Interface{ // routes are decided over all interfaces
			Name: "eth0", IsDefaultNetwork: true, Foreign: true,
			Addresses: []netip.Prefix{p.eth0()}, Gateways: []netip.Addr{podGateway()},
		}}},
	}
	for i := range rails {
		asked.Interfaces = append(asked.Interfaces, attach.Interface{
			Interface: routing.Interface{
				Name: name(i), Rail: i, Addresses: []netip.Prefix{p.address(i)}, Gateways: []netip.Addr{gateway(i)},
				MAC: p.mac(i), Coordinator: o.options, Masters: []string{parent(i)},
			},
			Link: attach.Link{Kind: attach.Macvlan, Mode: "bridge", Parent: attach.Parent{Name: parent(i)}},
		})
	}
	return asked
}

func (o *ours) add(ctx context.Context, p *pod) error {
	plan, err := o.attacher.Plan(ctx, o.pod(p))
	if err != nil {
		return err
	}
	kept := record.Attachment{
		ContainerID: p.id, PodUID: "uid-" + p.id, Namespace: "bench", Name: p.id,
		NetNS: p.path, ID: plan.ID, At: time.Now(), State: record.Attaching, Plan: plan,
	}
	sync, err := o.records.Put(kept)
	if err != nil {
		return err
	}
	synced := make(chan error, 1)
	go func() { synced <- sync() }()
	done, err := o.attacher.Apply(ctx, plan)
	if err != nil {
		return errors.Join(err, <-synced)
	}
	report, err := o.ask(ctx, p, done)
	if err == nil {
		kept.State, kept.Report.Checks = record.Attached, checks(report)
		for _, step := range done.Steps {
			kept.Report.Steps = append(kept.Report.Steps, record.Step(step))
		}
		_, err = o.records.Put(kept)
	}
	return errors.Join(err, <-synced)
}

// ask asks for the gateways.
func (o *ours) ask(ctx context.Context, p *pod, done *attach.Done) (probe.Report, error) {
	var targets []probe.Target
	for _, made := range done.Interfaces {
		if made.Name == "eth0" {
			continue
		}
		rail := len(targets)
		targets = append(targets, probe.Target{
			Interface: made.Name, Index: made.Index, Rail: rail, MAC: made.MAC, Parent: parent(rail),
			Gateways: []netip.Addr{gateway(rail)}, Detect: probe.Detection(o.options.Detection),
		})
	}
	if len(targets) != rails {
		return probe.Report{}, fmt.Errorf("%d interfaces were made, want %d", len(targets), rails)
	}
	ns, err := netns.Open(p.path)
	if err != nil {
		return probe.Report{}, err
	}
	defer func() { _ = ns.Close() }()
	report, err := o.prober.Run(ctx, ns.FD(), targets)
	return report, errors.Join(err, report.Err())
}

// checks are what was asked, for the record.
func checks(report probe.Report) []record.Check {
	var all []record.Check
	for _, r := range report.Results {
		all = append(all, record.Check{
			Interface: r.Interface, Kind: record.CheckKind(r.Kind), Address: r.Address.String(), MAC: r.MAC.String(),
			OK: r.OK, Waited: r.Waited, Tries: r.Tries,
		})
	}
	return all
}

func (o *ours) del(ctx context.Context, p *pod) error {
	kept, ok := o.records.Get(p.id)
	if !ok {
		return fmt.Errorf("there is no record of %s", p.id)
	}
	if err := o.attacher.Undo(ctx, kept.Plan, func(string) bool { return false }); err != nil {
		return err
	}
	sync, err := o.records.Remove(p.id)
	if err != nil {
		return err
	}
	return sync()
}
