package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/google/go-cmp/cmp"

	"railhead/internal/cnicall"
)

// scripted answers as the agent does: results in the version of the configuration.
type scripted struct {
	mu   sync.Mutex
	said []string // verb, container, interface and name of each request
	fail *cnicall.Error
}

func (s *scripted) handle(_ context.Context, r cnicall.Request) cnicall.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, strings.TrimSpace(strings.Join([]string{r.Plugin, r.Command, r.ContainerID, r.IfName}, " ")))
	if s.fail != nil {
		return cnicall.Answer{Error: s.fail}
	}
	if r.Command != cnicall.Add {
		return cnicall.Answer{}
	}
	var c config
	if err := json.Unmarshal(r.Config, &c); err != nil {
		return cnicall.Answer{Error: &cnicall.Error{Code: cnicall.CodeDecode, Msg: err.Error()}}
	}
	family := `"version":"4",`
	if strings.HasPrefix(c.CNIVersion, "1.") {
		family = ""
	}
	return cnicall.Answer{Output: fmt.Appendf(nil,
		`{"cniVersion":%q,"interfaces":[{"name":%q,"sandbox":%q}],"ips":[{%s"address":"10.1.0.5/16","interface":0}],"dns":{}}`,
		c.CNIVersion, r.IfName, r.NetNS, family)}
}

func (s *scripted) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.said
	s.said = nil
	return said
}

// names are those that NetworkAttachmentDefinitions ask for.
var names = []string{"spiderpool", "coordinator", "rdma", "sriov", "ib-sriov", "ipoib", "ifacer"}

// TestLibcni has libcni, as runtimes do, start the program for each verb, in each
// version, under each name.
func TestLibcni(t *testing.T) {
	t.Parallel()
	dir := plugins(t, names...)
	for i, spoken := range versions() {
		plugin := append([]string{"railhead-cni"}, names...)[i]
		t.Run(spoken+" "+plugin, func(t *testing.T) {
			t.Parallel()
			s := &scripted{}
			list := networkList(t, spoken, plugin, agent(t, s.handle))
			cni := libcni.NewCNIConfigWithCacheDir([]string{dir}, t.TempDir(), nil)
			rt := &libcni.RuntimeConf{ContainerID: "c1", NetNS: "/run/netns/none", IfName: "net1"}

			result, err := cni.AddNetworkList(t.Context(), list, rt)
			if err != nil {
				t.Fatal(err)
			}
			checkResult(t, result, spoken)
			want := []string{plugin + " ADD c1 net1"}
			err = cni.CheckNetworkList(t.Context(), list, rt)
			if spoken < "0.4.0" != (err != nil) {
				t.Error("CHECK:", err)
			}
			if spoken >= "0.4.0" {
				want = append(want, plugin+" CHECK c1 net1")
			}
			if err := cni.DelNetworkList(t.Context(), list, rt); err != nil {
				t.Error("DEL:", err)
			}
			want = append(want, plugin+" DEL c1 net1")
			if err := errors.Join(cni.GCNetworkList(t.Context(), list, &libcni.GCArgs{}), cni.GetStatusNetworkList(t.Context(), list)); err != nil {
				t.Error(err)
			}
			if spoken == "1.1.0" {
				want = append(want, plugin+" GC", plugin+" STATUS")
			}
			if d := cmp.Diff(want, s.requests()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func networkList(t *testing.T, spoken, plugin, socket string) *libcni.NetworkConfigList {
	t.Helper()
	list, err := libcni.NetworkConfFromBytes(fmt.Appendf(nil, `{"cniVersion":%q,"name":"n","plugins":[{"type":%q,"socket":%q}]}`, spoken, plugin, socket))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func checkResult(t *testing.T, result types.Result, spoken string) {
	t.Helper()
	if result.Version() != spoken {
		t.Errorf("a result of %s, want %s", result.Version(), spoken)
	}
	got, err := types100.NewResultFromResult(result)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.IPs) != 1 || got.IPs[0].Address.String() != "10.1.0.5/16" || len(got.Interfaces) != 1 || got.Interfaces[0].Sandbox != "/run/netns/none" {
		t.Errorf("got %v", got)
	}
}

// TestLibcniErrors sees codes and messages come through libcni.
func TestLibcniErrors(t *testing.T) {
	t.Parallel()
	cni := libcni.NewCNIConfigWithCacheDir([]string{plugins(t)}, t.TempDir(), nil)
	rt := &libcni.RuntimeConf{ContainerID: "c1", NetNS: "/run/netns/none", IfName: "net1"}
	s := &scripted{fail: &cnicall.Error{Code: 7, Msg: "network n: unknown field", Details: "mtuu"}}
	failing, away := networkList(t, "1.1.0", "railhead-cni", agent(t, s.handle)), networkList(t, "1.1.0", "railhead-cni", t.TempDir()+"/none")
	verbs := map[string]func(*libcni.NetworkConfigList) error{
		"ADD":    func(l *libcni.NetworkConfigList) error { _, err := cni.AddNetworkList(t.Context(), l, rt); return err },
		"DEL":    func(l *libcni.NetworkConfigList) error { return cni.DelNetworkList(t.Context(), l, rt) },
		"GC":     func(l *libcni.NetworkConfigList) error { return cni.GCNetworkList(t.Context(), l, &libcni.GCArgs{}) },
		"STATUS": func(l *libcni.NetworkConfigList) error { return cni.GetStatusNetworkList(t.Context(), l) },
	}
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		if err := verbs[name](failing); err == nil || !strings.Contains(err.Error(), "network n: unknown field; mtuu") {
			t.Errorf("%s: got %v", name, err)
		}
		err := verbs[name](away)
		if err == nil || !strings.Contains(err.Error(), "the Railhead agent is not there at "+t.TempDir()[:5]) {
			t.Errorf("%s: got %v", name, err)
		}
		var e *types.Error
		if want := map[bool]uint{true: 50, false: 11}[name == "STATUS"]; name != "GC" && (!errors.As(err, &e) || e.Code != want) {
			t.Errorf("%s: got %v, want code %d", name, err, want)
		}
	}
}

// TestLibcniVersions is what runtimes find out before the first call.
func TestLibcniVersions(t *testing.T) {
	t.Parallel()
	dir := plugins(t)
	cni := libcni.NewCNIConfigWithCacheDir([]string{dir}, t.TempDir(), nil)
	info, err := cni.GetVersionInfo(t.Context(), "railhead-cni")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(versions(), info.SupportedVersions()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, spoken := range version.All.SupportedVersions() {
		list := networkList(t, spoken, "railhead-cni", "/none")
		_, err := cni.ValidateNetworkList(t.Context(), list)
		if slices.Contains(versions(), spoken) != (err == nil) {
			t.Errorf("%s: %v", spoken, err)
		}
		if err == nil {
			continue
		}
		_, err = cni.AddNetworkList(t.Context(), list, &libcni.RuntimeConf{ContainerID: "c1", NetNS: "/n", IfName: "net1"})
		var e *types.Error
		if !errors.As(err, &e) || e.Code != types.ErrIncompatibleCNIVersion {
			t.Errorf("ADD in %s: got %v", spoken, err)
		}
	}
}
