package check

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseContainerd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		want containerdSettings
	}{
		{"empty", "", containerdSettings{}},
		{"containerd 1", "version = 2\n", containerdSettings{version: 2}},
		{"containerd 2", "version = 3\n", containerdSettings{version: 3, nri: true, cdi: true}},
		{
			"containerd 1 with both on",
			"version = 2\n[plugins.'io.containerd.nri.v1.nri']\ndisable = false\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n",
			containerdSettings{version: 2, nri: true, cdi: true},
		},
		{
			"containerd 2 with both off",
			"version = 3\n[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n",
			containerdSettings{version: 3},
		},
		{
			"other settings",
			"version = 3\nroot = '/x'\n[plugins.'io.containerd.cri.v1.images']\ndisable = 'never'\n",
			containerdSettings{},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseContainerd([]byte(tt.text))
			if tt.name == "other settings" {
				if err == nil {
					t.Errorf("a string for a boolean was taken: %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(containerdSettings{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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

func TestOSReleaseID(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"":                                      "",
		"NAME=x\nID=debian\nVERSION_ID=12\n":    "debian",
		"ID=\"rhel\"":                           "rhel",
		"ID='sles'\n":                           "sles",
		"VARIANT_ID=server\nID_LIKE=fedora\n":   "",
		"  ID=ubuntu  \nID_LIKE=\"debian\"\r\n": "ubuntu",
	}
	for text, want := range tests {
		if got := osReleaseID(text); got != want {
			t.Errorf("osReleaseID(%q) = %q, want %q", text, got, want)
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
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := parseContainerd(text)
		if err != nil && first != (containerdSettings{}) {
			t.Errorf("settings %+v beside error %v", first, err)
		}
		if again, _ := parseContainerd(text); again != first {
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

// FuzzOSReleaseID wants an ID that is written back to be read the same.
func FuzzOSReleaseID(f *testing.F) {
	f.Add("ID=debian\n")
	f.Add("ID=\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		id := osReleaseID(text)
		if again := osReleaseID("ID=\"" + id + "\"\n"); utf8.ValidString(id) && again != id {
			t.Errorf("%q came back as %q", id, again)
		}
	})
}
