package sysfs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/sysfs"
)

func TestParseParams(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   string
		want sysfs.Params
	}{
		{"none", " \t\n", nil},
		{"values and flags", "root=/dev/vda ro  quiet\n", sysfs.Params{{"root", "/dev/vda"}, {"ro", ""}, {"quiet", ""}}},
		{"equals signs", "root=UUID=1-2 a==", sysfs.Params{{"root", "UUID=1-2"}, {"a", "="}}},
		{"no value", "a=", sysfs.Params{{"a", ""}}},
		{"no name", "=a", sysfs.Params{{"=a", ""}}},
		{"value in quotes", `dyndbg="file a.c +p" x`, sysfs.Params{{"dyndbg", "file a.c +p"}, {"x", ""}}},
		{"all in quotes", `"a=b c" d`, sysfs.Params{{"a", "b c"}, {"d", ""}}},
		{"quotes within", `a=b"c d"e`, sysfs.Params{{"a", `b"c d"e`}}},
		{"quotes not closed", `a="b c`, sysfs.Params{{"a", "b c"}}},
		{"lone quote", `"`, sysfs.Params{{"", ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, sysfs.ParseParams(tt.in)); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParamsLookup(t *testing.T) {
	t.Parallel()
	params := sysfs.Params{{"iommu", "pt"}, {"quiet", ""}, {"ib-core.netns_mode", "0"}, {"iommu", "off"}}
	tests := []struct {
		name   string
		want   string
		wantOK bool
	}{
		{"iommu", "off", true},
		{"quiet", "", true},
		{"ib_core.netns_mode", "0", true},
		{"ib-core.netns-mode", "0", true},
		{"intel_iommu", "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, ok := params.Lookup(tt.name); got != tt.want || ok != tt.wantOK {
				t.Errorf("%q, %t; want %q, %t", got, ok, tt.want, tt.wantOK)
			}
		})
	}
}

// FuzzParseParams: parameters without quotes read the same when written.
func FuzzParseParams(f *testing.F) {
	f.Add(`root=/dev/vda ro a="b c" "d=e f" =`)
	f.Add(`"`)
	f.Add("a=b\v\fc")
	f.Fuzz(func(t *testing.T, s string) {
		params := sysfs.ParseParams(s)
		if strings.Contains(s, `"`) {
			return
		}
		var text strings.Builder
		for _, p := range params {
			text.WriteString(p.Name)
			if p.Value != "" {
				text.WriteString("=" + p.Value)
			}
			text.WriteString(" ")
		}
		if diff := cmp.Diff(params, sysfs.ParseParams(text.String())); diff != "" {
			t.Errorf("written and read again (-want +got):\n%s", diff)
		}
	})
}
