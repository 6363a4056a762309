package attribution

import (
	"errors"
	"slices"

	"railhead/internal/kernel/rdmanl"
)

// Use is what one user has on an RDMA device: a pod, the processes of the host
// together, or a module of the kernel. What mlx5 makes for processes without
// the RDMA core knowing (DEVX: some queue pairs of UCX and NCCL) is not in it,
// but the contexts of those processes are.
type Use struct {
	Pod    *Pod   // nil for the host and the kernel
	Kernel string // name of a module: "nvme_rdma"; empty for pods and the host

	PIDs     []int          // processes, in order
	Contexts int            // open uverbs files
	PDs      int            // protection domains
	MRs      int            // memory regions
	MRBytes  uint64         // their length
	CMIDs    int            // identifiers of the connection manager
	QPs      map[QPKind]int //nolint:revive // queue pairs, not queries per second; nil where there are none or they were not asked for one by one
	Unseen   int            // of the host's contexts and domains, and beyond them, those whose process is not visible or has ended
}

// QPKind is a type and a state of queue pairs, as the kernel's tools name them:
// "RC" and "RTS".
type QPKind struct{ Type, State string }

// Sole returns the pod that alone can send and receive on a device, nil where
// there is none: with a second pod, a process of the host, one that is not
// visible, or a module of the kernel that moves data.
//
// Where ib_ipoib is loaded it has a protection domain on each InfiniBand port,
// whether its netdev is up or not, and the port counts its packets among all
// others. So no pod is the sole user of such a device.
func Sole(uses []Use) *Pod {
	var sole *Pod
	for i := range uses {
		u := &uses[i]
		switch {
		case !u.canTransfer():
		case u.Pod == nil || sole != nil:
			return nil
		default:
			sole = u.Pod
		}
	}
	return sole
}

// canTransfer tells whether a user could have queue pairs, which take a context
// or, in the kernel, a protection domain.
func (u *Use) canTransfer() bool {
	if u.Kernel != "" {
		return !slices.Contains(idleKernelUsers, u.Kernel)
	}
	return u.Contexts+u.PDs+u.Unseen > 0
}

// Present returns who could use a device now, with no more than contexts and
// protection domains: cheap enough to be asked at every sample, for [Sole].
// Errors are those of Users.
func (a *Attributor) Present(c *rdmanl.Client, device uint32) ([]Use, error) {
	t := newTally(a)
	t.presence(c, device)
	return t.uses(), errors.Join(t.errs...)
}

// Users returns who uses a device and with how much: pods by namespace, name
// and UID, then the host, then modules of the kernel. It reads a table of each
// kind of object; that of queue pairs only where [Options] allow for as many as
// there are. What could be read comes with the error; while contexts are
// not known, [Sole] is nil. The client must see the device, and share the PID
// namespace of the Attributor's proc.
func (a *Attributor) Users(c *rdmanl.Client, device uint32) ([]Use, error) {
	t := newTally(a)
	t.presence(c, device)
	mrs, err := c.MRs(device)
	t.failed(err)
	for i := range mrs {
		u := t.user(mrs[i].Owner)
		u.MRs++
		u.MRBytes += mrs[i].Length
	}
	ids, err := c.CMIDs(device)
	t.failed(err)
	for i := range ids {
		t.user(ids[i].Owner).CMIDs++
	}
	if a.options.QPSAtMost > 0 {
		t.queuePairs(c, device, a.options.QPSAtMost)
	}
	return t.uses(), errors.Join(t.errs...)
}
