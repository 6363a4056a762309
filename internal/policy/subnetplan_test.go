package policy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// planTestApp is whose pools are planned.
func planTestApp() Application {
	return Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web", UID: "uid-00001"}
}

// planTestSubnet is a subnet of a name, CIDR and addresses.
func planTestSubnet(tb testing.TB, name, cidr string, ips ...string) Subnet {
	tb.Helper()
	subnet, review := SubnetOf(&v2beta1.SpiderSubnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v2beta1.SubnetSpec{Subnet: cidr, IPs: ips}})
	if !review.OK() {
		tb.Fatal(review.Errors)
	}
	return subnet
}

// planTestPool is a pool of the application for eth0 and IPv4.
func planTestPool(name, subnet string, change func(*ownPool, *v2beta1.SpiderIPPool), ips ...string) *v2beta1.SpiderIPPool {
	own := ownPool{app: planTestApp(), nic: "eth0", version: 4, subnet: subnet, isReclaimed: true}
	pool := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v2beta1.IPPoolSpec{Subnet: "10.1.0.0/16", IPs: ips}}
	if subnet == "tiny" {
		pool.Spec.Subnet = "10.2.0.0/24"
	}
	if change != nil {
		change(&own, pool)
	}
	pool.Labels = own.labels()
	pool.Spec.PodAffinity = own.app.Affinity()
	return pool
}

// planTestSet is a set of "10.1.0.3" and "10.1.0.5-10.1.0.9".
func planTestSet(tb testing.TB, ips ...string) *netipx.IPSet {
	tb.Helper()
	var build netipx.IPSetBuilder
	for _, text := range ips {
		r, err := parseRange(text)
		if err != nil {
			tb.Fatal(err)
		}
		build.AddRange(r)
	}
	return built(&build)
}

// planInWords is a plan, one line a write or problem.
func planInWords(plan AutoPoolPlan) string {
	var lines []string
	line := func(verb string, p *v2beta1.SpiderIPPool) {
		l := p.Labels
		lines = append(lines, strings.Join([]string{
			verb, p.Name, strings.Join(p.Spec.IPs, ","), l[v2beta1.LabelSubnet], l[v2beta1.LabelInterface],
			l[v2beta1.LabelIPVersion], "reclaim=" + l[v2beta1.LabelReclaim], l[v2beta1.LabelOwnerUID],
		}, " "))
	}
	for _, p := range plan.Create {
		line("create", p)
	}
	for _, p := range plan.Update {
		line("update", p)
	}
	for _, p := range plan.Delete {
		lines = append(lines, "delete "+p.Name)
	}
	for _, p := range plan.Problems {
		lines = append(lines, p.Reason+": "+p.Error.Error())
	}
	return strings.Join(lines, "\n")
}

func TestPlanAutoPools(t *testing.T) {
	t.Parallel()
	const (
		oneNIC  = `[{"interface":"eth0","ipv4":["a"]}]`
		ownName = "auto4-web-eth0-00001"
	)
	other := func(o *ownPool, _ *v2beta1.SpiderIPPool) { o.app.UID = "uid-99999" }
	kept := func(o *ownPool, _ *v2beta1.SpiderIPPool) { o.app.UID, o.isReclaimed = "uid-99999", false }
	stranger := func(o *ownPool, _ *v2beta1.SpiderIPPool) { o.app.Name = "db" }
	going := func(_ *ownPool, p *v2beta1.SpiderIPPool) { p.DeletionTimestamp = new(metav1.Now()) }
	for name, tt := range map[string]struct {
		claim    string // "": none
		number   string
		gone     bool
		pods     int64
		pools    []*v2beta1.SpiderIPPool
		reserved []string
		used     map[string][]string
		want     string
	}{
		"new": {
			claim: oneNIC, pods: 3,
			want: "create " + ownName + " 10.1.0.1-10.1.0.4 a eth0 IPv4 reclaim=true uid-00001",
		},
		"new beside others and reserved addresses": {
			claim: oneNIC, pods: 3,
			pools:    []*v2beta1.SpiderIPPool{planTestPool("db", "a", stranger, "10.1.0.2-10.1.0.3")},
			reserved: []string{"10.1.0.5"},
			want:     "create " + ownName + " 10.1.0.1,10.1.0.4,10.1.0.6-10.1.0.7 a eth0 IPv4 reclaim=true uid-00001",
		},
		"fixed number": {
			claim: oneNIC, number: "2", pods: 30,
			want: "create " + ownName + " 10.1.0.1-10.1.0.2 a eth0 IPv4 reclaim=true uid-00001",
		},
		"no pods and nothing more wanted": {claim: oneNIC, number: "+0"},
		"as it should be": {
			claim: oneNIC, pods: 1,
			pools: []*v2beta1.SpiderIPPool{planTestPool("any-name", "a", nil, "10.1.0.7", "10.1.0.9")},
		},
		"both families, two interfaces, two candidates": {
			claim: `[{"interface":"eth0","ipv4":["tiny","a"],"ipv6":["six"]},{"interface":"net1","ipv4":["a"]}]`, pods: 2,
			want: `create auto4-web-eth0-00001 10.1.0.1-10.1.0.3 a eth0 IPv4 reclaim=true uid-00001
create auto6-web-eth0-00001 fd00::-fd00::2 six eth0 IPv6 reclaim=true uid-00001
create auto4-web-net1-00001 10.1.0.4-10.1.0.6 a net1 IPv4 reclaim=true uid-00001`,
		},
		"grows by the lowest free": {
			claim: oneNIC, pods: 3,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", nil, "10.1.0.5-10.1.0.6"), planTestPool("db", "a", stranger, "10.1.0.1")},
			want:  "update " + ownName + " 10.1.0.2-10.1.0.3,10.1.0.5-10.1.0.6 a eth0 IPv4 reclaim=true uid-00001",
		},
		"does not take back what an administrator excluded": {
			claim: oneNIC, pods: 2,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", func(_ *ownPool, p *v2beta1.SpiderIPPool) { p.Spec.ExcludeIPs = []string{"10.1.0.2"} }, "10.1.0.1-10.1.0.3")},
			want:  "update " + ownName + " 10.1.0.1,10.1.0.3-10.1.0.4 a eth0 IPv4 reclaim=true uid-00001",
		},
		"shrinks by the highest that are free": {
			claim: oneNIC, pods: 1,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", nil, "10.1.0.1-10.1.0.5")},
			used:  map[string][]string{ownName: {"10.1.0.5"}},
			want:  "update " + ownName + " 10.1.0.1,10.1.0.5 a eth0 IPv4 reclaim=true uid-00001",
		},
		"shrinks no further than to what is used": {
			claim: oneNIC, number: "1",
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", nil, "10.1.0.1-10.1.0.5")},
			used:  map[string][]string{ownName: {"10.1.0.2-10.1.0.4"}},
			want:  "update " + ownName + " 10.1.0.2-10.1.0.4 a eth0 IPv4 reclaim=true uid-00001",
		},
		"gives up reserved addresses but those in use": {
			claim: oneNIC, pods: 2, reserved: []string{"10.1.0.1-10.1.0.2"},
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", nil, "10.1.0.1-10.1.0.3")},
			used:  map[string][]string{ownName: {"10.1.0.2"}},
			want:  "update " + ownName + " 10.1.0.2-10.1.0.4 a eth0 IPv4 reclaim=true uid-00001",
		},
		"too few free": {
			claim: `[{"interface":"eth0","ipv4":["tiny"]}]`, pods: 3,
			want: `SubnetExhausted: annotations[ipam.spidernet.io/subnets][0].ipv4: Invalid value: ["tiny"]: the pool of eth0 wants 4 addresses, and tiny has 2 free: add addresses to a subnet, name a further one, or want fewer by ipam.spidernet.io/ippool-ip-number`,
		},
		"too few to grow": {
			claim: `[{"interface":"eth0","ipv4":["tiny"]}]`, pods: 3,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "tiny", nil, "10.2.0.1")},
			want:  `SubnetExhausted: annotations[ipam.spidernet.io/subnets][0].ipv4: Invalid value: "tiny": pool auto4-web-eth0-00001 has 1 address and wants 3 more, and tiny has 1 free: add addresses to a subnet, name a further one, or want fewer by ipam.spidernet.io/ippool-ip-number`,
		},
		"unknown subnet and wrong family, one serves": {
			claim: `[{"interface":"eth0","ipv4":["nix","six","a"]}]`,
			want: `create auto4-web-eth0-00001 10.1.0.1 a eth0 IPv4 reclaim=true uid-00001
UnknownSubnet: annotations[ipam.spidernet.io/subnets][0].ipv4[0]: Invalid value: "nix": no SpiderSubnet that keeps the rules has this name: want one of IPv4, which are a, tiny
WrongFamily: annotations[ipam.spidernet.io/subnets][0].ipv4[1]: Invalid value: "six": the SpiderSubnet is fd00::/64: want one of IPv4, which are a, tiny`,
		},
		"another subnet": {
			claim: oneNIC,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "tiny", nil, "10.2.0.1")},
			want:  "create " + ownName + "-2 10.1.0.1 a eth0 IPv4 reclaim=true uid-00001\ndelete " + ownName,
		},
		"another subnet that cannot serve leaves the old pool": {
			claim: `[{"interface":"eth0","ipv4":["nix"]}]`,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "tiny", nil, "10.2.0.1")},
			want:  `UnknownSubnet: annotations[ipam.spidernet.io/subnets][0].ipv4[0]: Invalid value: "nix": no SpiderSubnet that keeps the rules has this name: want one of IPv4, which are a, tiny`,
		},
		"the former pool still goes": {
			claim: oneNIC,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", going, "10.1.0.1")},
			want:  "create " + ownName + "-2 10.1.0.2 a eth0 IPv4 reclaim=true uid-00001",
		},
		"wants none any more": {
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", nil, "10.1.0.1"), planTestPool("db", "a", stranger, "10.1.0.2")},
			want:  "delete " + ownName,
		},
		"gone": {
			gone:  true,
			pools: []*v2beta1.SpiderIPPool{planTestPool(ownName, "a", nil, "10.1.0.1"), planTestPool("kept", "a", kept, "10.1.0.2")},
			want:  "delete " + ownName,
		},
		"made again: takes over what was kept": {
			claim: oneNIC, pods: 1,
			pools: []*v2beta1.SpiderIPPool{planTestPool("kept", "a", kept, "10.1.0.5-10.1.0.6")},
			want:  "update kept 10.1.0.5-10.1.0.6 a eth0 IPv4 reclaim=true uid-00001",
		},
		"made again: what was not kept goes": {
			claim: oneNIC,
			pools: []*v2beta1.SpiderIPPool{planTestPool("former", "a", other, "10.1.0.5-10.1.0.6")},
			want:  "create " + ownName + " 10.1.0.1 a eth0 IPv4 reclaim=true uid-00001\ndelete former",
		},
		"made again and wants none: the kept pool waits": {
			pools: []*v2beta1.SpiderIPPool{planTestPool("kept", "a", kept, "10.1.0.5-10.1.0.6")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := planTestApp()
			if tt.gone {
				app.UID = ""
			}
			state := AutoPoolState{
				Subnets:  []Subnet{planTestSubnet(t, "a", "10.1.0.0/16", "10.1.0.1-10.1.0.200"), planTestSubnet(t, "tiny", "10.2.0.0/24", "10.2.0.1-10.2.0.2"), planTestSubnet(t, "six", "fd00::/64", "fd00::-fd00::ffff:ffff:ffff:ffff")},
				Pools:    tt.pools,
				Reserved: func(int64) *netipx.IPSet { return planTestSet(t, tt.reserved...) },
				Used:     func(pool string) *netipx.IPSet { return planTestSet(t, tt.used[pool]...) },
			}
			plan := PlanAutoPools(app, planTestClaim(t, tt.claim, tt.number), tt.pods, state)
			if diff := cmp.Diff(tt.want, planInWords(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// planTestClaim is what annotations claim.
func planTestClaim(tb testing.TB, subnets, number string) *Claim {
	tb.Helper()
	if subnets == "" {
		return nil
	}
	annotations := map[string]string{v2beta1.AnnotationSubnets: subnets}
	if number != "" {
		annotations[v2beta1.AnnotationPoolNumber] = number
	}
	claim, review := ClaimOf(field.NewPath("annotations"), annotations, DefaultConfig())
	if !review.OK() {
		tb.Fatal(review.Errors)
	}
	return claim
}

// FuzzPlanAutoPools: pools of many applications that come, grow, shrink and go
// never overlap, lie within their subnet, avoid what is reserved, keep what is
// used, and have as many addresses as are wanted, or a problem says why not.
func FuzzPlanAutoPools(f *testing.F) {
	f.Add([]byte{3, 200, 1, 7, 2, 9, 0, 0, 3, 3}, uint8(20), uint8(3), false)
	f.Add([]byte{255, 254, 1, 1, 2, 2, 0, 9}, uint8(200), uint8(0), true)
	f.Fuzz(func(t *testing.T, steps []byte, size, reserve uint8, isSix bool) {
		cidr, first, last, families := "10.1.0.0/16", "10.1.0.1", "10.1.0."+strconv.Itoa(min(int(size)+1, 255)), "ipv4"
		hold := "10.1.0." + strconv.Itoa(int(reserve))
		if isSix {
			cidr, first, last, families = "fd00::/64", "fd00::1", fmt.Sprintf("fd00::%x", int(size)+1), "ipv6"
			hold = fmt.Sprintf("fd00::%x", reserve)
		}
		subnet := planTestSubnet(t, "s", cidr, first+"-"+last)
		reserved := planTestSet(t, hold)
		used := map[string]*netipx.IPSet{}
		state := AutoPoolState{
			Subnets:  []Subnet{subnet},
			Reserved: func(int64) *netipx.IPSet { return reserved },
			Used:     func(pool string) *netipx.IPSet { return used[pool] },
		}
		claim := planTestClaim(t, `[{"interface":"eth0","`+families+`":["s"]}]`, "+0")
		for i := 0; i+1 < len(steps) && i < 60; i += 2 {
			app := planTestApp()
			app.Name = "app" + strconv.Itoa(int(steps[i]%5))
			want := int64(steps[i+1])
			plan := PlanAutoPools(app, claim, want, state)
			state.Pools = planApplied(state.Pools, plan)
			planHolds(t, state.Pools, subnet, used, reserved)
			if again := PlanAutoPools(app, claim, want, state); again.Chooses() || len(again.Delete) > 0 {
				t.Fatalf("the same again plans:\n%s", planInWords(again))
			}
			for _, p := range state.Pools {
				pool, _ := PoolOf(p)
				if pool.Owner.Name == app.Name && len(plan.Problems) == 0 {
					least := max(want, Count(orEmpty(used[p.Name])))
					if n := Count(pool.Addresses); n < want || n > least {
						t.Fatalf("%s has %d addresses and wants %d", p.Name, n, want)
					}
					used[p.Name] = setOf(lowest(difference(pool.Addresses, reserved), int64(steps[i])%4))
				}
			}
		}
	})
}

// planApplied are pools after a plan.
func planApplied(pools []*v2beta1.SpiderIPPool, plan AutoPoolPlan) []*v2beta1.SpiderIPPool {
	byName := map[string]*v2beta1.SpiderIPPool{}
	for _, p := range append(plan.Create, plan.Update...) {
		byName[p.Name] = p
	}
	for _, p := range plan.Delete {
		byName[p.Name] = nil
	}
	var after []*v2beta1.SpiderIPPool
	for _, p := range pools {
		changed, ok := byName[p.Name]
		delete(byName, p.Name)
		switch {
		case !ok:
			after = append(after, p)
		case changed != nil:
			after = append(after, changed)
		}
	}
	for _, p := range plan.Create {
		if byName[p.Name] != nil {
			after = append(after, p)
		}
	}
	return after
}

// planHolds is what must hold after every plan.
func planHolds(t *testing.T, pools []*v2beta1.SpiderIPPool, subnet Subnet, used map[string]*netipx.IPSet, reserved *netipx.IPSet) {
	t.Helper()
	all := &netipx.IPSet{}
	for _, p := range pools {
		pool, review := PoolOf(p)
		if !review.OK() {
			t.Fatalf("%s: %v", p.Name, review.Errors)
		}
		if Count(both(all, pool.Addresses)) > 0 {
			t.Fatalf("%s overlaps another pool", p.Name)
		}
		all = union(all, pool.Addresses)
		if Count(difference(pool.Addresses, subnet.Addresses)) > 0 {
			t.Fatalf("%s is not within its subnet: %v", p.Name, p.Spec.IPs)
		}
		if Count(both(pool.Addresses, reserved)) > 0 {
			t.Fatalf("%s has reserved addresses: %v", p.Name, p.Spec.IPs)
		}
		if missing := difference(orEmpty(used[p.Name]), pool.Addresses); Count(missing) > 0 {
			t.Fatalf("%s lost %v, which a pod has", p.Name, FormatRanges(missing))
		}
	}
}

func TestLowestAndHighest(t *testing.T) {
	t.Parallel()
	set := planTestSet(t, "10.0.0.254-10.0.1.1", "10.0.2.0", "fd00::ffff:ffff:ffff:fffe-fd00:0:0:1::5", "ffff::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
	for n, want := range map[int64][2]string{
		0:         {"", ""},
		3:         {"10.0.0.254-10.0.1.0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffd-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		5:         {"10.0.0.254-10.0.1.1 10.0.2.0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffb-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		8:         {"10.0.0.254-10.0.1.1 10.0.2.0 fd00::ffff:ffff:ffff:fffe-fd00:0:0:1::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff8-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		1<<63 - 1: {"10.0.0.254-10.0.1.1 10.0.2.0 fd00::ffff:ffff:ffff:fffe-fd00:0:0:1::5 ffff::-ffff::7fff:ffff:ffff:fff1", "ffff:ffff:ffff:ffff:8000::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	} {
		got := [2]string{strings.Join(FormatRanges(setOf(lowest(set, n))), " "), strings.Join(FormatRanges(setOf(highest(set, n))), " ")}
		if got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// BenchmarkPlanAutoPools: a pool out of a /64 with a thousand pools in it costs
// what one out of 65,535 addresses does.
func BenchmarkPlanAutoPools(b *testing.B) {
	for name, last := range map[string]string{"slash64": "fd00::ffff:ffff:ffff:ffff", "slash112": "fd00::ffff"} {
		for _, pools := range []int{0, 1000} {
			b.Run(fmt.Sprintf("%s/pools=%d", name, pools), func(b *testing.B) {
				state := AutoPoolState{Subnets: []Subnet{planTestSubnet(b, "s", "fd00::/64", "fd00::1-"+last)}}
				for i := range pools {
					state.Pools = append(state.Pools, &v2beta1.SpiderIPPool{
						ObjectMeta: metav1.ObjectMeta{Name: "p" + strconv.Itoa(i)},
						Spec:       v2beta1.IPPoolSpec{Subnet: "fd00::/64", IPs: []string{fmt.Sprintf("fd00::%x-fd00::%x", 16*i+1, 16*i+8)}},
					})
				}
				claim := planTestClaim(b, `[{"interface":"eth0","ipv6":["s"]}]`, "100")
				for b.Loop() {
					if plan := PlanAutoPools(planTestApp(), claim, 0, state); len(plan.Create) != 1 {
						b.Fatal(planInWords(plan))
					}
				}
			})
		}
	}
}
