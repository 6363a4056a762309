package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"railhead/internal/kubetest"
)

// TestMemory wants a node to keep little of a large cluster, told by the API server
// or by its disk. The whole agent has 40 MiB; of 5,000 pools, the Catalog keeps most.
//
//nolint:paralleltest // other tests would count
func TestMemory(t *testing.T) {
	if isRace {
		t.Skip("the race detector takes memory too")
	}
	for name, test := range map[string]struct{ pools, most int }{
		"250 pods and 1,000 networks":         {0, 4 << 20},
		"and 5,000 pools, which is the worst": {5000, 13 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, a := range []*apiServer{large(test.pools), away()} {
				if kept := keptOf(t, a, dir, test.pools); kept > test.most {
					t.Errorf("%d bytes are kept, want at most %d", kept, test.most)
				}
			}
		})
	}
}

// large is a cluster of 1,000 networks and some pools, and a node with 250 pods.
func large(pools int) *apiServer {
	a := small()
	for i := range 1000 {
		name := fmt.Sprintf("rail-%d", i)
		config := fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"plugins":[{"type":"macvlan","mode":"bridge","mtu":9000,`+
			`"master":"enp%ds0f0np0","ipam":{"type":"spiderpool","default_ipv4_ippool":["pool-%d"],"match_master_subnet":true}},`+
			`{"type":"coordinator","mode":"overlay","hostRuleTable":500,"tunePodRoutes":true,"detectGateway":true,"detectIPConflict":true},`+
			`{"type":"rdma"},{"type":"tuning","sysctl":{"net.ipv4.conf.all.arp_announce":"2","net.ipv4.conf.all.arp_ignore":"1"}}]}`, name, i%256, i)
		a.set(nadsPath, nadOf(fmt.Sprintf("team-%d", i%50), name, config))
	}
	for i := range pools {
		pool := poolOf(fmt.Sprintf("pool-%d", i), fmt.Sprintf("10.%d.%d.0/24", i/256+100, i%256), fmt.Sprintf("10.%d.%d.10-10.%[1]d.%[2]d.200", i/256+100, i%256))
		kubetest.Meta(pool)["labels"] = content{"ipam.spidernet.io/ippool-cidr": fmt.Sprintf("10-%d-%d-0-24", i/256+100, i%256)}
		kubetest.Meta(pool)["finalizers"] = []any{"spiderpool.spidernet.io"}
		kubetest.Meta(pool)["managedFields"] = []any{content{"manager": strings.Repeat("m", 600)}}
		if status, ok := pool["status"].(content); ok {
			status["allocatedIPs"] = strings.Repeat("a", 3000)
		}
		a.set(poolsPath, pool)
	}
	for i := range 250 {
		a.set(podsPath, podOf("n1", fmt.Sprintf("train-%d", i), fmt.Sprintf("a4a8f1d4-34d5-4c8c-9a32-%012d", i), content{
			"labels": content{"app": "training", "job-name": "llama", "controller-uid": "6ba41f39-5f0e-4d09-9d50-f5cbc1b0a6b7", "index": fmt.Sprint(i)},
			"annotations": content{
				"k8s.v1.cni.cncf.io/networks":       "rail-0,rail-1,rail-2,rail-3,rail-4,rail-5,rail-6,rail-7",
				"k8s.v1.cni.cncf.io/network-status": strings.Repeat("s", 3000), "railhead.io/attachment": strings.Repeat("t", 2000),
			},
			"ownerReferences": []any{content{"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "uid": "u", "controller": true}},
			"managedFields":   []any{content{"manager": strings.Repeat("m", 3000)}},
		}))
	}
	return a
}

// heap is how many bytes are in use once what is free was freed.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// keptOf is how many bytes a Cache keeps of large, as an API server tells it, or as
// one before it kept it in a directory.
func keptOf(t *testing.T, a *apiServer, dir string, pools int) int {
	t.Helper()
	before := heap()
	c, err := New(Config{API: a.Config(), Node: "n1", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	isKept := func() bool {
		_, err := os.Stat(filepath.Join(dir, diskFile))
		return err == nil
	}
	for end := time.Now().Add(time.Minute); c.Ready() != nil || !isKept(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(c.Ready(), isKept())
		}
	}
	if n := len(c.Catalog().Pools()); n != pools+1 { // which selection asks for, and the Catalog keeps
		t.Errorf("%d pools are known", n)
	}
	kept := int(heap() - before)
	t.Logf("kept: %.1f MiB", float64(kept)/(1<<20))
	cancel()
	<-done
	runtime.KeepAlive(c)
	runtime.KeepAlive(a)
	return kept
}
