package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/inventory"
	"railhead/internal/kernel/kerneltest"
)

func TestParseContainerd(t *testing.T) {
	t.Parallel()
	on, off := true, false
	tests := []struct {
		name string
		text string
		want containerdSettings
	}{
		{"empty", "", containerdSettings{}},
		{"format alone", "version = 3\n", containerdSettings{version: 3}},
		{
			"containerd 1 with both on",
			"version = 2\n[plugins.'io.containerd.nri.v1.nri']\ndisable = false\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n",
			containerdSettings{version: 2, nri: &on, cdi: &on},
		},
		{
			"containerd 2 with both off",
			"version = 3\n[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n",
			containerdSettings{version: 3, nri: &off, cdi: &off},
		},
		{
			"plugin disabled as a whole, and imports",
			"version = 3\nimports = ['conf.d/*.toml']\ndisabled_plugins = ['io.containerd.nri.v1.nri']\n",
			containerdSettings{version: 3, nri: &off, imports: []string{"conf.d/*.toml"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseContainerd([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(containerdSettings{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseContainerdRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"version", "version = 'three'\n", "[plugins.x]\ndisable = 'never'\n"} {
		if got, err := parseContainerd([]byte(text)); err == nil {
			t.Errorf("%q was taken as %+v", text, got)
		}
	}
}

// TestContainerd reads whole configurations as they lie on nodes.
func TestContainerd(t *testing.T) {
	t.Parallel()
	const process = "-- proc/7/{} --\ncomm: containerd\n"
	tests := []struct {
		name     string
		files    string
		nri, cdi bool
		problem  bool
	}{
		{name: "no configuration, no socket", files: "", nri: false, cdi: true},
		{name: "no configuration, socket", files: "-- run/nri/nri.sock --\n", nri: true, cdi: true},
		{name: "format 3", files: "-- etc/containerd/config.toml --\nversion = 3\n", nri: true, cdi: true},
		{name: "format 2, no socket", files: "-- etc/containerd/config.toml --\nversion = 2\n", nri: false, cdi: false},
		{name: "format 2 of containerd 2", files: "-- etc/containerd/config.toml --\nversion = 2\n-- var/run/nri/nri.sock --\n", nri: true, cdi: true},
		{
			name: "imports count",
			files: "-- etc/containerd/config.toml --\nversion = 3\nimports = ['conf.d/*.toml']\n" +
				"-- etc/containerd/conf.d/10.toml --\nversion = 3\n[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n",
			nri: false, cdi: true,
		},
		{
			name:  "a file that imports itself",
			files: "-- etc/containerd/config.toml --\nversion = 3\nimports = ['/etc/containerd/config.toml']\n",
			nri:   true, cdi: true,
		},
		{name: "damaged", files: "-- etc/containerd/config.toml --\nversion =\n", nri: true, cdi: true, problem: true},
		{
			name:  "k3s' own",
			files: "-- var/lib/rancher/k3s/agent/etc/containerd/config.toml --\nversion = 2\n-- etc/containerd/config.toml --\nversion = 3\n",
			nri:   false, cdi: false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := Gather(kerneltest.TreeString(t, process+tt.files), &inventory.Snapshot{}, nil)
			if len(n.Runtimes) != 1 {
				t.Fatalf("runtimes %+v", n.Runtimes)
			}
			r := n.Runtimes[0]
			if r.NRI != tt.nri || r.CDI != tt.cdi || (len(n.Problems) > 0) != tt.problem {
				t.Errorf("NRI %v, CDI %v, problems %q; want %v, %v, any: %v", r.NRI, r.CDI, n.Problems, tt.nri, tt.cdi, tt.problem)
			}
		})
	}
}

// TestCRIO reads CRI-O's configuration and its drop-ins, of which the last
// counts.
func TestCRIO(t *testing.T) {
	t.Parallel()
	const tree = "-- proc/7/{} --\ncomm: crio\n" +
		"-- etc/crio/crio.conf --\n[crio.nri]\nenable_nri = false\n" +
		"-- etc/crio/crio.conf.d/10-a.conf --\n[crio.nri]\nenable_nri = true\n" +
		"-- etc/crio/crio.conf.d/20-b.conf --\n[crio.runtime]\n"
	n := Gather(kerneltest.TreeString(t, tree), &inventory.Snapshot{}, nil)
	want := []Runtime{{Name: "crio", PID: 7, Config: "/etc/crio/crio.conf.d/10-a.conf", NRI: true, CDI: true}}
	if diff := cmp.Diff(want, n.Runtimes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseCRIO(t *testing.T) {
	t.Parallel()
	on, off := true, false
	tests := map[string]*bool{
		"":                                    nil,
		"[crio]\nlog_level = \"info\"\n":      nil,
		"[crio.nri]\nenable_nri = true\n":     &on,
		"[crio.nri]\nenable_nri = false\n":    &off,
		"[crio.runtime]\nenable_nri = true\n": nil,
	}
	for text, want := range tests {
		got, err := parseCRIO([]byte(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: error %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestOSReleaseIDs(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"":                                      nil,
		"NAME=x\nID=debian\nVERSION_ID=12\n":    {"debian"},
		"ID=\"rocky\"\nID_LIKE=\"rhel fedora\"": {"rocky", "rhel", "fedora"},
		"ID='sles'\n":                           {"sles"},
		"VARIANT_ID=server\n":                   nil,
		"  ID=ubuntu  \nID_LIKE=\"debian\"\r\n": {"ubuntu", "debian"},
	}
	for text, want := range tests {
		if diff := cmp.Diff(want, osReleaseIDs(text)); diff != "" {
			t.Errorf("osReleaseIDs(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestModeParam(t *testing.T) {
	t.Parallel()
	tests := map[string]string{"0": exclusive, "N": exclusive, "off": exclusive, "1": shared, "Y": shared, "": shared, "2": ""}
	for value, want := range tests {
		if got := modeParam(value); got != want {
			t.Errorf("modeParam(%q) = %q, want %q", value, got, want)
		}
	}
}

// FuzzParseContainerd wants an error or settings, and the same answer for the
// same text.
func FuzzParseContainerd(f *testing.F) {
	f.Add([]byte("version = 3\n[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n"))
	f.Add([]byte("version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n"))
	f.Add([]byte("[plugins]\n\x00"))
	compare := cmp.AllowUnexported(containerdSettings{})
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := parseContainerd(text)
		if err != nil && !cmp.Equal(first, containerdSettings{}, compare) {
			t.Errorf("settings %+v beside error %v", first, err)
		}
		if again, _ := parseContainerd(text); !cmp.Equal(again, first, compare) {
			t.Errorf("%+v, then %+v", first, again)
		}
	})
}

// FuzzParseCRIO wants an error or an answer.
func FuzzParseCRIO(f *testing.F) {
	f.Add([]byte("[crio.nri]\nenable_nri = true\n"))
	f.Add([]byte("crio = 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if nri, err := parseCRIO(text); err != nil && nri != nil {
			t.Errorf("answer %v beside error %v", *nri, err)
		}
	})
}

// FuzzOSReleaseIDs wants IDs that are written back to be read the same.
func FuzzOSReleaseIDs(f *testing.F) {
	f.Add("ID=debian\n")
	f.Add("ID_LIKE=\"rhel fedora\"\n")
	f.Add("ID=\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		ids := osReleaseIDs(text)
		again := osReleaseIDs("ID_LIKE=\"" + strings.Join(ids, " ") + "\"\n")
		if !strings.ContainsAny(strings.Join(ids, ""), "'\"") && !slices.Equal(again, ids) {
			t.Errorf("%q came back as %q", ids, again)
		}
	})
}
