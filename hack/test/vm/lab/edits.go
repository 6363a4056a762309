//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// edit is one change to one file of a source tree. Its text must occur exactly once: a source that has moved on is
// refused, as a change in the wrong place would be worse than none.
type edit struct {
	file, find, replace string
}

// rxeEdits make Soft-RoCE a device that `rdma dev set ... netns` can move, as adapters of the mlx5 family are:
//
//   - The core moves only devices that promise to survive without their user contexts.
//   - Every move makes the MAD layer's QP 1 anew; the driver must forget the old one.
//   - A queue that a process has mapped may outlive its context and its device: its release must touch neither, and the
//     module must stay while the mapping has functions of it.
//   - A network device that changes its namespace announces itself as unregistered while its state says it is not; the
//     RDMA device above it stays and only changes the namespace of its UDP socket.
//   - The network device's parent becomes the RDMA device's, so that sysfs ties it to its virtual function.
func rxeEdits() []edit {
	return []edit{
		{
			"rxe_verbs.c",
			"static const struct ib_device_ops rxe_dev_ops = {\n",
			"static void rxe_disassociate_ucontext(struct ib_ucontext *uc)\n{\n}\n\n" +
				"static const struct ib_device_ops rxe_dev_ops = {\n" +
				"\t.disassociate_ucontext = rxe_disassociate_ucontext,\n",
		},
		{
			"rxe_verbs.c",
			"\terr = rxe_qp_chk_destroy(qp);\n",
			"\tif (ibqp->qp_type == IB_QPT_GSI)\n\t\tto_rdev(ibqp->device)->port.qp_gsi_index = 0;\n\n" +
				"\terr = rxe_qp_chk_destroy(qp);\n",
		},
		{
			"rxe_mmap.c",
			"rxe = to_rdev(ip->context->device);\n",
			"rxe = list_empty(&ip->pending_mmaps) ?\n\t\tNULL : to_rdev(ip->context->device);\n",
		},
		{
			"rxe_mmap.c",
			"\tspin_lock_bh(&rxe->pending_lock);\n\n\tif (!list_empty(",
			"\tif (rxe)\n\t\tspin_lock_bh(&rxe->pending_lock);\n\n\tif (!list_empty(",
		},
		{
			"rxe_mmap.c",
			"\tlist_del(&ip->pending_mmaps);\n\n\tspin_unlock_bh(",
			"\tlist_del(&ip->pending_mmaps);\n\n\tif (rxe)\n\t\tspin_unlock_bh(",
		},
		{
			"rxe_mmap.c",
			"\tkfree(ip);\n",
			"\tkfree(ip);\n\tmodule_put(THIS_MODULE);\n",
		},
		{
			"rxe_mmap.c",
			"\tkref_init(&ip->ref);\n",
			"\tkref_init(&ip->ref);\n\t__module_get(THIS_MODULE);\n",
		},
		{
			"rxe_net.c",
			"\tcase NETDEV_UNREGISTER:\n",
			"\tcase NETDEV_REGISTER:\n\t\trxe_net_init(ndev);\n\t\tbreak;\n" +
				"\tcase NETDEV_UNREGISTER:\n" +
				"\t\tif (ndev->reg_state == NETREG_REGISTERED) {\n" +
				"\t\t\trxe_net_del(&rxe->ib_dev);\n\t\t\tbreak;\n\t\t}\n",
		},
		{
			"rxe_verbs.c",
			"\tdev->node_type = RDMA_NODE_IB_CA;\n",
			"\tdev->node_type = RDMA_NODE_IB_CA;\n\tdev->dev.parent = ndev->dev.parent;\n",
		},
	}
}

// apply makes the edits in the files of dir.
func apply(dir string, edits []edit) error {
	for _, e := range edits {
		path := filepath.Join(dir, e.file)
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, err := e.apply(string(raw))
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// apply makes the edit in a text.
func (e edit) apply(text string) (string, error) {
	if n := strings.Count(text, e.find); n != 1 {
		return "", fmt.Errorf("the source has moved on: in %s this text occurs %d times, and one is expected:\n%s", e.file, n, e.find)
	}
	return strings.Replace(text, e.find, e.replace, 1), nil
}
