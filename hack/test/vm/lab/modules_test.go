//go:build linux

package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadOrder(t *testing.T) {
	t.Parallel()
	index := parseModuleIndex(`kernel/net/9p/9pnet.ko.xz: kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet_virtio.ko.xz: kernel/drivers/virtio/virtio-ring.ko.xz kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/fs/netfs/netfs.ko.xz:
kernel/drivers/virtio/virtio-ring.ko.xz:
`, "kernel/fs/overlayfs/overlay.ko\nkernel/lib/crc32c-sw.ko\n")
	tests := []struct {
		name  string
		names []string
		want  []string
		err   string
	}{
		{name: "nothing"},
		{name: "without dependencies", names: []string{"virtio_ring"}, want: []string{"kernel/drivers/virtio/virtio-ring.ko.xz"}},
		{
			name: "the deepest first, each once", names: []string{"9pnet_virtio", "9p", "netfs"},
			want: []string{
				"kernel/fs/netfs/netfs.ko.xz", "kernel/net/9p/9pnet.ko.xz", "kernel/drivers/virtio/virtio-ring.ko.xz",
				"kernel/net/9p/9pnet_virtio.ko.xz", "kernel/fs/9p/9p.ko.xz",
			},
		},
		{name: "built in, dashes and underscores", names: []string{"overlay", "crc32c_sw"}},
		{name: "optional", names: []string{"?nothing", "?netfs"}, want: []string{"kernel/fs/netfs/netfs.ko.xz"}},
		{name: "missing", names: []string{"siw", "netfs", "netdevsim"}, err: "the kernel has no module siw, netdevsim"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := index.loadOrder(tt.names)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
