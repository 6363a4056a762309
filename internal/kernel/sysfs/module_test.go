package sysfs_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

func TestModule(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/system.txtar")
	tests := []struct {
		name       string
		module     string
		want       sysfs.Module
		wantLoaded bool
	}{
		{
			name:       "loaded",
			module:     "ib-core",
			want:       sysfs.Module{Name: "ib_core", Params: map[string]string{"netns_mode": "N", "send_queue_size": "128"}},
			wantLoaded: true,
		},
		{
			name:       "built in",
			module:     "nvme_core",
			want:       sysfs.Module{Name: "nvme_core", Builtin: true, Params: map[string]string{"multipath": "Y"}},
			wantLoaded: true,
		},
		{
			name:       "without parameters",
			module:     "mlx5_core",
			want:       sysfs.Module{Name: "mlx5_core"},
			wantLoaded: true,
		},
		{
			name:   "not loaded",
			module: "rdma_rxe",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, loaded, err := fs.Module(tt.module)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || loaded != tt.wantLoaded {
				t.Errorf("loaded %t, want %t; module (-want +got):\n%s", loaded, tt.wantLoaded, diff)
			}
		})
	}
}

// TestModuleHostile: a parameter that cannot be read is left out; one that is
// no parameter is an error beside the others.
func TestModuleHostile(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, "-- sys/module/m/{} --\nrefcnt: 0\nparameters/a: 1\nparameters/b: 2\nparameters/c/d: 3\n")
	want := map[string]string{"a": "1", "b": "2"}
	if os.Geteuid() != 0 { // root reads it all the same
		delete(want, "b")
	}
	if err := os.Chmod(fs.Sys("module/m/parameters/b"), 0o200); err != nil {
		t.Fatal(err)
	}
	got, loaded, err := fs.Module("m")
	if !loaded || err == nil {
		t.Errorf("loaded %t, error %v; want it loaded and an error for the directory", loaded, err)
	}
	if diff := cmp.Diff(want, got.Params); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
}
