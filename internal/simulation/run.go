package simulation

import (
	"fmt"
	"net/netip"
	"time"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// run is a pod that runs.
type run struct {
	pod       *Pod
	name, uid string
	number    int    // of the pods that this scenario has had
	pids      []int  // that are invented
	users     []int  // processes that use devices
	place     int    // of the pod of the scenario that matches, on a real node
	group     string // control groups of its container there
	address   netip.Addr
	begun     time.Duration
	functions []*function
	space     *namespace // its network
}

// Each pod has a block of PIDs: that of its first process, which only waits,
// then those that use devices.
const (
	firstPID   = 20000
	pidsOfPod  = 100
	podsOfPIDs = 40000 // as many pods later, PIDs begin anew
)

// newRun returns a run of a pod of the scenario, by its place there and how many
// there were of it.
func newRun(s *Scenario, place, turn int, functions map[string]*function) *run {
	p := &s.Pods[place]
	r := &run{pod: p, name: p.Name, uid: p.UID, begun: p.schedule().begin(turn)}
	if p.Every.Duration > 0 {
		r.name = fmt.Sprintf("%s-%d", p.Name, turn)
	}
	if r.uid == "" {
		r.uid = uidOf(s.Seed, "Pod", p.Namespace, r.name)
	}
	r.number = (place + turn*len(s.Pods)) % podsOfPIDs
	for i := range p.Processes + 1 {
		r.pids = append(r.pids, firstPID+r.number*pidsOfPod+i)
	}
	r.users = r.pids[1:]
	r.address = r.addressIn(10, 244)
	for _, device := range p.Devices {
		r.functions = append(r.functions, functions[device])
	}
	return r
}

// addressIn is the address of the pod in a network of 16 bits.
func (r *run) addressIn(a, b int) netip.Addr {
	const hosts, first = 250, 2
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(r.number / hosts), byte(r.number%hosts + first)})
}

// isAlone tells whether it has its devices alone.
func (r *run) isAlone() bool { return r.pod.Use == modeExclusive }

// Numbers of the objects of a process begin here, so that they say nothing of
// each other.
const (
	firstQPN = 0x100
	firstMRN = 0x1000
)

// use adds what the processes of a pod have on a device.
func (r *run) use(h *fakekernel.HCA) {
	for _, pid := range r.users {
		owner := rdmanl.Owner{PID: pid}
		context := uint32(len(h.Contexts) + 1)
		pd := uint32(len(h.PDs) + 1)
		h.Contexts = append(h.Contexts, rdmanl.Context{Number: context, Owner: owner})
		h.PDs = append(h.PDs, rdmanl.PD{
			Number: pd, Context: new(context), Users: uint64(r.pod.QueuePairs + r.pod.MemoryRegions.Count), Owner: owner,
		})
		h.CQs = append(h.CQs, rdmanl.CQ{
			Number: uint32(len(h.CQs) + 1), Context: new(context), Entries: 4096, Users: uint64(2 * r.pod.QueuePairs), Owner: owner,
		})
		r.addQueuePairs(h, owner, pd)
		for range r.pod.MemoryRegions.Count {
			h.MRs = append(h.MRs, rdmanl.MR{
				Number: firstMRN + uint32(len(h.MRs)), PD: new(pd), Length: uint64(r.pod.MemoryRegions.Size.Value), Owner: owner,
			})
		}
		for i := range r.pod.Connections {
			h.CMIDs = append(h.CMIDs, rdmanl.CMID{
				Number: uint32(len(h.CMIDs) + 1), Port: 1, PortSpace: "TCP", State: "CONNECT", QPType: "RC",
				Source:      netip.AddrPortFrom(r.address, uint16(20000+i)),
				Destination: netip.AddrPortFrom(peer(), 18515), Owner: owner,
			})
		}
	}
}

// peer is whom all are connected with.
func peer() netip.Addr { return netip.AddrFrom4([4]byte{10, 244, 200, 1}) }

func (r *run) addQueuePairs(h *fakekernel.HCA, owner rdmanl.Owner, pd uint32) {
	for i := range r.pod.QueuePairs {
		state := "RTS"
		if i < r.pod.Failed {
			state = "ERR"
		}
		number := firstQPN + uint32(len(h.QPs))
		h.QPs = append(h.QPs, rdmanl.QP{
			Number: number, Port: 1, PD: new(pd), RemoteQPN: new(number + 0x4000), ReceivePSN: new(uint32(1)), SendPSN: new(uint32(1)),
			Type: "RC", State: state, PathMigration: "MIGRATED", Owner: owner,
		})
	}
}
