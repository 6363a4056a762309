package check

import "fmt"

// gpuPeerMemory finds nodes whose NVIDIA GPUs and RDMA cards cannot reach each
// other's memory.
func gpuPeerMemory(n *Node, _ Wishes) []Finding {
	gpus := 0
	for _, g := range n.Inventory.GPUs {
		if g.Driver == "nvidia" {
			gpus++
		}
	}
	if gpus == 0 || len(n.ports(isStandard)) == 0 {
		return nil
	}
	var findings []Finding
	if !n.Modules["nvidia_peermem"].Loaded && !n.Modules["nv_peer_mem"].Loaded {
		f := Finding{
			Severity: Warning,
			ID:       "nvidia-peermem-missing",
			Object:   "module nvidia_peermem",
			Seen:     fmt.Sprintf("it is not loaded on a node with %s", plural(gpus, "NVIDIA GPU")),
			Why:      "without it, or DMA-BUF of the open GPU driver, RDMA traffic of GPUs goes through main memory",
			Mend: append(loadModule("nvidia_peermem"),
				"# \"Invalid argument\": this kernel's ib_core has no peer memory; use the open GPU driver, whose DMA-BUF needs no such module"),
		}
		if n.OpenGPUDriver {
			f.Severity = Info
			f.Why = "only programs that cannot use DMA-BUF, which the open GPU driver has, need it"
		}
		findings = append(findings, f)
	}
	if !n.Modules["gdrdrv"].Loaded {
		findings = append(findings, Finding{
			Severity: Info,
			ID:       "gdrdrv-missing",
			Object:   "module gdrdrv",
			Seen:     "it is not loaded",
			Why:      "libraries that copy small messages with GDRCopy (UCX, NVSHMEM) fall back to slower ways",
			Mend:     append([]string{"# install GDRCopy's kernel module, then"}, loadModule("gdrdrv")...),
		})
	}
	return findings
}
