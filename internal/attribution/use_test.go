package attribution

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/versus"
)

// hca is the index of the RDMA device in the tests.
const hca = 3

// kernelOf is a kernel with one RDMA device.
func kernelOf(h fakekernel.HCA) *fakekernel.Kernel {
	return fakekernel.New(fakekernel.Facts{
		System: &rdmanl.System{NetNSMode: "shared"},
		RDMA: []rdmanl.Device{{
			Index: hca, Name: "mlx5_3", PortCount: 1,
			Ports: []rdmanl.Port{{DeviceIndex: hca, DeviceName: "mlx5_3", Number: 1, State: "ACTIVE", PhysState: "LINK_UP"}},
		}},
		HCAs: map[uint32]*fakekernel.HCA{hca: &h},
	})
}

func by(pid int) rdmanl.Owner { return rdmanl.Owner{PID: pid} }

func kernel(module string) rdmanl.Owner { return rdmanl.Owner{KernelName: module} }

// users are two pods, one of them with a thread, the host, and the kernel.
func users(tb testing.TB) (*Attributor, fakekernel.HCA) {
	tb.Helper()
	p := newProc(tb)
	p.start(10, 5, "0::/system.slice/host.service\n")
	p.start(20, 5, podCgroup(someUID))
	p.start(21, 6, podCgroup(someUID))
	p.write(21, "status", "Tgid:\t20\n") // a thread
	p.start(22, 7, podCgroup(someUID))
	p.start(30, 5, podCgroup(otherUID))
	known := pods{someUID: {UID: someUID, Namespace: "b"}, otherUID: {UID: otherUID, Namespace: "a"}}
	return New(p.fs(), Options{Pods: known, QPSAtMost: DefaultQPSAtMost}), fakekernel.HCA{
		Contexts: []rdmanl.Context{
			{Number: 1, Owner: by(20)},
			{Number: 2, Owner: by(21)},
			{Number: 3, Owner: by(22)},
			{Number: 4, Owner: by(30)},
			{Number: 5, Owner: by(10)},
			{Number: 6},
			{Number: 7, Owner: by(99)},
		},
		PDs: []rdmanl.PD{{Number: 1, Owner: kernel("ib_core")}, {Number: 2, Owner: by(20)}, {Number: 3, Owner: kernel("nvme_rdma")}},
		MRs: []rdmanl.MR{
			{Number: 1, Length: 1 << 30, Owner: by(22)}, {Number: 2, Length: 5, Owner: by(20)}, {Number: 3, Length: 1 << 40, Owner: by(30)},
		},
		CMIDs: []rdmanl.CMID{
			{Number: 1, PortSpace: "TCP", State: "LISTEN", Owner: by(30)}, {Number: 2, PortSpace: "TCP", State: "CONNECT", Owner: kernel("nvme_rdma")},
		},
		QPs: []rdmanl.QP{
			{Number: 1, Type: "GSI", State: "RTS", Owner: kernel("ib_core")},
			{Number: 2, Type: "RC", State: "RTS", Owner: by(20)},
			{Number: 3, Type: "RC", State: "RTS", Owner: by(22)},
			{Number: 4, Type: "RC", State: "ERR", Owner: by(22)},
			{Number: 5, Type: "UD", State: "RTS", Owner: by(10)},
			{Number: 6, Type: "UD", State: "RTS"},
		},
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	a, h := users(t)
	want := []Use{
		{Pod: a.options.Pods.Pod(otherUID), PIDs: []int{30}, Contexts: 1, MRs: 1, MRBytes: 1 << 40, CMIDs: 1},
		{
			Pod: a.options.Pods.Pod(someUID), PIDs: []int{20, 22}, Contexts: 3, PDs: 1, MRs: 2, MRBytes: 1<<30 + 5,
			QPs: map[QPKind]int{{"RC", "RTS"}: 2, {"RC", "ERR"}: 1},
		},
		{PIDs: []int{10}, Contexts: 3, QPs: map[QPKind]int{{"UD", "RTS"}: 2}, Unseen: 2},
		{Kernel: "ib_core", PDs: 1, QPs: map[QPKind]int{{"GSI", "RTS"}: 1}},
		{Kernel: "nvme_rdma", PDs: 1, CMIDs: 1},
	}
	for range 2 {
		got, err := a.Users(kernelOf(h).RDMA(), hca)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestPresent(t *testing.T) {
	t.Parallel()
	a, h := users(t)
	k := kernelOf(h)
	got, err := a.Present(k.RDMA(), hca)
	want := []Use{
		{Pod: a.options.Pods.Pod(otherUID), PIDs: []int{30}, Contexts: 1},
		{Pod: a.options.Pods.Pod(someUID), PIDs: []int{20, 22}, Contexts: 3, PDs: 1},
		{PIDs: []int{10}, Contexts: 3, Unseen: 2},
		{Kernel: "ib_core", PDs: 1},
		{Kernel: "nvme_rdma", PDs: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, r := range []fakekernel.Request{fakekernel.GetQPs, fakekernel.GetMRs, fakekernel.GetCMIDs} {
		if n := k.Asked(r); n != 0 {
			t.Errorf("%s was asked %d times, want never", r, n)
		}
	}
}

// TestUsersOfManyQPs has more queue pairs than are asked for one by one.
func TestUsersOfManyQPs(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{5: 0, 6: 1} {
		a, h := users(t)
		a.options.QPSAtMost = most
		k := kernelOf(h)
		uses, err := a.Users(k.RDMA(), hca)
		if n := k.Asked(fakekernel.GetQPs); err != nil || n != want {
			t.Errorf("at most %d: queue pairs were asked for %d times: %v, want %d", most, n, err, want)
		}
		if has := uses[1].QPs != nil; has != (want == 1) || uses[1].MRs != 2 {
			t.Errorf("at most %d: a pod has %+v", most, uses[1])
		}
	}
}

func TestUsersWithoutQPs(t *testing.T) {
	t.Parallel()
	a, h := users(t)
	a.options.QPSAtMost = 0
	k := kernelOf(h)
	if _, err := a.Users(k.RDMA(), hca); err != nil || k.Asked(fakekernel.GetQPs) != 0 {
		t.Errorf("queue pairs were asked for %d times: %v, want never", k.Asked(fakekernel.GetQPs), err)
	}
}

// TestUsersErrors has one kind of object fail, which hides none of the others.
func TestUsersErrors(t *testing.T) {
	t.Parallel()
	for _, r := range []fakekernel.Request{
		fakekernel.GetContexts, fakekernel.GetPDs, fakekernel.GetMRs, fakekernel.GetCMIDs, fakekernel.GetQPs, fakekernel.GetResources,
	} {
		t.Run(string(r), func(t *testing.T) {
			t.Parallel()
			a, h := users(t)
			k := kernelOf(h)
			k.Refuse(r, unix.EIO)
			uses, err := a.Users(k.RDMA(), hca)
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("error %v, want %v", err, syscall.EIO)
			}
			if len(uses) != 5 {
				t.Errorf("%d users, want 5", len(uses))
			}
		})
	}
}

func TestUsersOfOddProcess(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	p.start(20, 5, podCgroup(someUID))
	p.start(30, 5, podCgroup(otherUID))
	p.write(30, "stat", "odd")
	h := fakekernel.HCA{Contexts: []rdmanl.Context{{Number: 1, Owner: by(20)}, {Number: 2, Owner: by(30)}}}
	uses, err := New(p.fs(), Options{}).Present(kernelOf(h).RDMA(), hca)
	if err == nil || len(uses) != 2 || uses[1].Unseen != 1 || Sole(uses) != nil {
		t.Errorf("uses %+v: %v, want an error, and a second user that is not seen", uses, err)
	}
}

func TestSole(t *testing.T) {
	t.Parallel()
	alone := []rdmanl.Context{{Number: 1, Owner: by(20)}, {Number: 2, Owner: by(22)}}
	for name, test := range map[string]struct {
		contexts []rdmanl.Context
		pds      []rdmanl.PD
		cmids    []rdmanl.CMID
		refuse   fakekernel.Request
		errno    unix.Errno
		want     string
	}{
		"nobody":             {},
		"one pod":            {contexts: alone, want: someUID},
		"the core beside it": {contexts: alone, pds: []rdmanl.PD{{Owner: kernel("ib_core")}, {Number: 1, Owner: kernel("mlx5_ib")}}, want: someUID},
		"another pod":        {contexts: append([]rdmanl.Context{{Number: 3, Owner: by(30)}}, alone...)},
		"another pod that only listens": {
			contexts: alone, cmids: []rdmanl.CMID{{PortSpace: "TCP", State: "LISTEN", Owner: by(30)}}, want: someUID,
		},
		"a process of the host":            {contexts: append([]rdmanl.Context{{Number: 3, Owner: by(10)}}, alone...)},
		"a process that is not visible":    {contexts: append([]rdmanl.Context{{Number: 3}}, alone...)},
		"a process that has ended":         {contexts: append([]rdmanl.Context{{Number: 3, Owner: by(99)}}, alone...)},
		"a module":                         {contexts: alone, pds: []rdmanl.PD{{Owner: kernel("nvme_rdma")}}},
		"a domain of another":              {contexts: alone, pds: []rdmanl.PD{{Owner: by(30)}}},
		"contexts not known":               {contexts: alone, refuse: fakekernel.GetContexts, errno: unix.EIO},
		"domains not known":                {contexts: alone, refuse: fakekernel.GetPDs, errno: unix.EIO},
		"number of contexts not known":     {contexts: alone, refuse: fakekernel.GetResources, errno: unix.EIO},
		"kernel that shows no contexts":    {contexts: alone, pds: []rdmanl.PD{{Owner: by(20)}}, refuse: fakekernel.GetContexts, errno: unix.EOPNOTSUPP, want: someUID},
		"the same with a second domain":    {contexts: alone, pds: []rdmanl.PD{{Owner: by(20)}, {Number: 1, Owner: by(30)}}, refuse: fakekernel.GetContexts, errno: unix.EOPNOTSUPP},
		"the host alone":                   {contexts: []rdmanl.Context{{Owner: by(10)}}},
		"a pod with a connection and none": {cmids: []rdmanl.CMID{{PortSpace: "TCP", State: "LISTEN", Owner: by(30)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _ := users(t)
			k := kernelOf(fakekernel.HCA{Contexts: test.contexts, PDs: test.pds, CMIDs: test.cmids})
			if test.refuse != "" {
				k.Refuse(test.refuse, test.errno)
			}
			uses, err := a.Users(k.RDMA(), hca)
			if (err != nil) != (test.errno == unix.EIO) {
				t.Errorf("error %v", err)
			}
			got := ""
			if pod := Sole(uses); pod != nil {
				got = pod.UID
			}
			if got != test.want {
				t.Errorf("sole user %q, want %q, of %+v", got, test.want, uses)
			}
		})
	}
}

// TestHiddenContexts has the kernel count more contexts than it shows, as it
// did for those of other PID namespaces.
func TestHiddenContexts(t *testing.T) {
	t.Parallel()
	a, _ := users(t)
	tally := newTally(a)
	k := kernelOf(fakekernel.HCA{Contexts: []rdmanl.Context{{Owner: by(20)}, {Number: 1, Owner: by(30)}}})
	tally.compare(k.RDMA(), hca, 1)
	if tally.host.Unseen != 1 {
		t.Errorf("%d users are not seen, want 1", tally.host.Unseen)
	}
}

// BenchmarkUsers is a device with 16 pods of 8 processes, 10,000 memory regions
// and 1,000 queue pairs, beside the netlink dumps and one file of each process.
func BenchmarkUsers(b *testing.B) {
	p := newProc(b)
	var h fakekernel.HCA
	for i := range 128 {
		p.start(1000+i, 5, podCgroup(someUID[:34]+string("0123456789abcdef"[i/8])+"0"))
		h.Contexts = append(h.Contexts, rdmanl.Context{Number: uint32(i), Owner: by(1000 + i)})
		h.PDs = append(h.PDs, rdmanl.PD{Number: uint32(i), Owner: by(1000 + i)})
	}
	for i := range 10000 {
		h.MRs = append(h.MRs, rdmanl.MR{Number: uint32(i), Length: 1 << 20, Owner: by(1000 + i%128)})
	}
	for i := range 1000 {
		h.QPs = append(h.QPs, rdmanl.QP{Number: uint32(i), Type: "RC", State: "RTS", Owner: by(1000 + i%128)})
	}
	a, c := New(p.fs(), Options{QPSAtMost: DefaultQPSAtMost}), kernelOf(h).RDMA()
	var stats []string
	for i := range 128 {
		stats = append(stats, filepath.Join(p.dir(1000+i), "stat"))
	}
	b.Run("users", func(b *testing.B) {
		users := func() error { _, err := a.Users(c, hca); return err }
		versus.Floor(b, users, func() error {
			_, err1 := c.Contexts(hca)
			_, err2 := c.PDs(hca)
			_, err3 := c.MRs(hca)
			_, err4 := c.CMIDs(hca)
			_, err5 := c.QPs(hca)
			_, err6 := c.Resources(hca)
			return errors.Join(err1, err2, err3, err4, err5, err6, readBare(stats))
		})
	})
	b.Run("present", func(b *testing.B) {
		present := func() error { _, err := a.Present(c, hca); return err }
		versus.Floor(b, present, func() error {
			_, err1 := c.Contexts(hca)
			_, err2 := c.PDs(hca)
			_, err3 := c.Resources(hca)
			return errors.Join(err1, err2, err3, readBare(stats))
		})
	})
}

// readBare reads files by the fewest system calls that there are.
func readBare(files []string) error {
	buf := make([]byte, 4096)
	for _, name := range files {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, errRead := unix.Read(fd, buf)
		if err := errors.Join(errRead, unix.Close(fd)); err != nil {
			return err
		}
	}
	return nil
}
