//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"railhead/hack/debian"
	"railhead/hack/program"
)

// Kernel chooses a kernel: the newest of a series ("7" or "6.12"), or with the whole version ("7.2.12") that one, of those
// that a Debian suite offers for amd64.
type Kernel struct{ Suite, Series string }

// kernelFiles are what a machine boots from.
type kernelFiles struct {
	release string
	// image is the kernel.
	image string
	// modules is a disk image with the modules of guestModules and their index.
	modules string
	// boot is a directory with the modules of bootModules, uncompressed, with names in load order.
	boot string
}

// bootModules are what the initramfs needs to reach its disks and the shared directory. A question mark is a module
// that only some kernels have: ext4 asks for a checksum by its algorithm, which newer kernels have built in.
const bootModules = `?crc32c_generic virtio_pci virtio_blk virtio_rng ext4 overlay 9pnet_virtio 9p`

// guestModules are what tests may load, with all they depend on; a kernel without one of them is refused, so that a
// renamed module is seen here and not as a puzzling test failure.
const guestModules = `
	ib_core ib_uverbs ib_umad rdma_cm rdma_ucm ib_ipoib rdma_rxe ?crc32_generic
	veth macvlan macvtap ipvlan dummy bonding 8021q bridge vrf vxlan ifb tun af_packet nlmon
	igb igbvf vfio_pci
	nf_tables nft_chain_nat nft_ct nft_masq nft_fib_inet nft_reject_inet nf_conntrack
	inet_diag tcp_diag udp_diag sch_tbf sch_htb sch_ingress cls_flower act_mirred`

// makeKernel fetches the kernel and prepares its modules.
func makeKernel(ctx context.Context, c *cache, s *debian.Suite, tools tree, k Kernel) (*kernelFiles, error) {
	names, err := s.Names(ctx, kernelPackage)
	if err != nil {
		return nil, err
	}
	release, err := newestKernel(k, names)
	if err != nil {
		return nil, err
	}
	debs, err := kernelDebs(ctx, s, release)
	if err != nil {
		return nil, err
	}
	inputs := append(debian.Strings(debs), bootModules, guestModules)
	dir, err := c.product(ctx, "kernel-"+release, inputs, func(ctx context.Context, out, scratch string) error {
		root, downloads := filepath.Join(scratch, "root"), filepath.Join(scratch, "debs")
		if err := mkdirs(root, downloads); err != nil {
			return err
		}
		if err := s.Unpack(ctx, root, downloads, debs); err != nil {
			return err
		}
		return packKernel(ctx, tools, root, filepath.Join(scratch, "selected"), release, out)
	})
	return &kernelFiles{
		release: release,
		image:   filepath.Join(dir, "vmlinuz"),
		modules: filepath.Join(dir, "modules.ext4"),
		boot:    filepath.Join(dir, "boot"),
	}, err
}

// kernelPackage begins the names of the packages that make up a bootable kernel; its release follows.
const kernelPackage = "linux-image-"

// newestKernel finds the newest release of the series in a list of package names. Flavours (cloud, rt), release
// candidates, and unsigned and debugging variants are not considered.
func newestKernel(k Kernel, packages []string) (string, error) {
	image := regexp.MustCompile(`^` + kernelPackage + `((\d+(?:\.\d+)*)(?:[+-][0-9a-z.]+)?-amd64)$`)
	var newest, found []string
	for _, name := range packages {
		m := image.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		found = append(found, m[1])
		inSeries := m[2] == k.Series || strings.HasPrefix(m[2], k.Series+".")
		if inSeries && (newest == nil || compareReleases(m[1], newest[1]) > 0) {
			newest = m
		}
	}
	if newest == nil {
		slices.Sort(found)
		return "", fmt.Errorf("suite %s offers no kernel %s; it has %q: name one of them in machines_test.go, "+
			"or let RAILHEAD_VM_REFRESH=1 look for newer ones", k.Suite, k.Series, found)
	}
	return newest[1], nil
}

// compareReleases compares kernel releases by the numbers in them, from left to right.
func compareReleases(a, b string) int {
	version := func(release string) []int { return numbers(strings.TrimSuffix(release, "-amd64")) }
	return slices.Compare(version(a), version(b))
}

// numbers are the decimal numbers in a text.
func numbers(text string) []int {
	var found []int
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			continue // longer than an int: no version number
		}
		found = append(found, n)
	}
	return found
}

// kernelDebs are the packages of a kernel release that hold its image and modules: one package in older suites, two in
// newer ones. The rest of what the image depends on is for installing it.
func kernelDebs(ctx context.Context, s *debian.Suite, release string) ([]debian.Package, error) {
	all, err := s.Closure(ctx, kernelPackage+release)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d debian.Package) bool { return !strings.HasSuffix(d.Name, "-"+release) }), nil
}

// packKernel writes vmlinuz, modules.ext4 and boot/ into out from the unpacked packages in root.
func packKernel(ctx context.Context, tools tree, root, selected, release, out string) error {
	images, err := findFiles(root, "vmlinuz*")
	if err != nil {
		return err
	}
	if len(images) != 1 {
		return fmt.Errorf("the packages of kernel %s have %d images, and one is expected: %q", release, len(images), images)
	}
	if err := copyFile(images[0], filepath.Join(out, "vmlinuz")); err != nil {
		return err
	}
	from, err := moduleDir(root, release)
	if err != nil {
		return err
	}
	// depmod wants lib/modules/<release> below its base directory, wherever the package has it.
	base := filepath.Join(filepath.Dir(selected), "base")
	if err := mkdirs(filepath.Join(base, "lib/modules")); err != nil {
		return err
	}
	if err := os.Symlink(from, filepath.Join(base, "lib/modules", release)); err != nil {
		return err
	}
	if err := program.Run(tools.command(ctx, "usr/sbin/depmod", "-b", base, release)); err != nil {
		return err
	}
	to := filepath.Join(selected, "usr/lib/modules", release)
	order, err := copyModules(ctx, tools, from, to)
	if err != nil {
		return err
	}
	if err := os.Symlink("usr/lib", filepath.Join(selected, "lib")); err != nil {
		return err
	}
	if err := program.Run(tools.command(ctx, "usr/sbin/depmod", "-b", selected, release)); err != nil {
		return err
	}
	if err := copyBootModules(to, order, filepath.Join(out, "boot")); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(selected, "lib")); err != nil {
		return err // the userland has it
	}
	return makeDisk(ctx, tools, selected, filepath.Join(out, "modules.ext4"))
}

// moduleDir is where the packages have the modules of a release.
func moduleDir(root, release string) (string, error) {
	for _, lib := range []string{"usr/lib/modules", "lib/modules"} {
		dir := filepath.Join(root, lib, release)
		if _, err := os.Stat(filepath.Join(dir, "kernel")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("the packages of kernel %s have no modules", release)
}

// copyModules copies the wanted modules and what they depend on, and unpacks them: that is slow inside a guest. It
// returns the paths of the boot modules in load order, relative to the module directory.
func copyModules(ctx context.Context, tools tree, from, to string) ([]string, error) {
	index, err := readModuleIndex(from)
	if err != nil {
		return nil, err
	}
	boot, err := index.loadOrder(strings.Fields(bootModules))
	if err != nil {
		return nil, err
	}
	all, err := index.loadOrder(strings.Fields(bootModules + guestModules))
	if err != nil {
		return nil, err
	}
	var packed []string
	for _, path := range all {
		dst := filepath.Join(to, path)
		if err := copyFile(filepath.Join(from, path), dst); err != nil {
			return nil, err
		}
		if filepath.Ext(path) == ".xz" {
			packed = append(packed, dst)
		}
	}
	for _, name := range []string{"modules.builtin", "modules.builtin.modinfo", "modules.order"} {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return nil, err
		}
	}
	if len(packed) > 0 {
		if err := program.Run(tools.command(ctx, "usr/bin/xz", append([]string{"--decompress", "--threads=0"}, packed...)...)); err != nil {
			return nil, err
		}
	}
	return boot, nil
}

// copyBootModules copies modules so that the order of their names is their load order.
func copyBootModules(from string, paths []string, to string) error {
	for i, path := range paths {
		path = strings.TrimSuffix(path, ".xz")
		name := fmt.Sprintf("%02d-%s", i, filepath.Base(path))
		if err := copyFile(filepath.Join(from, path), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}
