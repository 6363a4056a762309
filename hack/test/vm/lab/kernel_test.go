//go:build linux

package lab

import (
	"strings"
	"testing"
)

func TestNewestKernel(t *testing.T) {
	t.Parallel()
	listing := strings.Fields(`
		linux-image-amd64 linux-image-amd64-dbg linux-image-cloud-amd64
		linux-image-6.12.94+deb13-amd64 linux-image-6.12.107+deb13-amd64 linux-image-6.12.107+deb13-amd64-unsigned
		linux-image-6.1.0-50-amd64
		linux-image-7.2.9+deb14-amd64 linux-image-7.2.13+deb14-amd64 linux-image-7.2.13+deb14.1-amd64
		linux-image-7.10~rc2-amd64 linux-image-7.11.1+deb14-cloud-amd64 linux-image-7.11.1+deb14-rt-amd64
		linux-image-8.0.1+deb15-amd64-dbg linux-image-8.0.1+deb15-amd64`)
	tests := []struct {
		name, series string
		packages     []string
		want         string
		err          string
	}{
		{name: "of a major version", series: "7", packages: listing, want: "7.2.13+deb14.1-amd64"},
		{name: "of a minor version", series: "7.2", packages: listing, want: "7.2.13+deb14.1-amd64"},
		{name: "a whole version", series: "7.2.9", packages: listing, want: "7.2.9+deb14-amd64"},
		{name: "numbers are not compared as text", series: "6.12", packages: listing, want: "6.12.107+deb13-amd64"},
		{name: "a series is not a prefix of another", series: "6.1", packages: listing, want: "6.1.0-50-amd64"},
		{
			name: "none", series: "7", packages: []string{"linux-image-amd64", "linux-image-8.0.1+deb15-amd64"},
			err: `suite sid offers no kernel 7; it has ["8.0.1+deb15-amd64"]: name one of them in machines_test.go, ` +
				"or let RAILHEAD_VM_REFRESH=1 look for newer ones",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := newestKernel(Kernel{Suite: "sid", Series: tt.series}, tt.packages)
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got %q, %v; want %q, %s", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestParseTSC(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]int{
		"": 0,
		"<6>[    0.000000] tsc: Detected 2596.134 MHz processor\n": 2596134,
		"tsc: Detected 800.000 MHz processor":                      800000,
		"tsc: Fast TSC calibration using PIT\n":                    0,
	} {
		if got := parseTSC(log); got != want {
			t.Errorf("%q: %d, want %d", log, got, want)
		}
	}
}
