package driver

import (
	"strings"
	"testing"

	"railhead/hack/cluster/fabric"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"100M": 100e6, "2G": 2e9, "9600": 9600, "1.5k": 1500, "1Ki": 1024, "1P": 1e15,
	} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1M", "fast", "100Mbit", "2P", "100E", "1e30", "1e100000000", "1e-100000000", "9223372036854775808"} {
		if got, err := parseRate(text); err == nil || !strings.Contains(err.Error(), "want bits a second") {
			t.Errorf("%q: %d, %v, want it refused", text, got, err)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"100M", "2G", "1e3", "-5", "1m", "999999999999999999999E", "1E-0000000007"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseRate(text)
		if err == nil && (got == 0 || got > maxRate) {
			t.Errorf("%q is taken for %d bits a second", text, got)
		}
	})
}

func TestFaultOf(t *testing.T) {
	t.Parallel()
	for want, state := range map[string]fabric.State{
		"":                         {Connected: true, Carrier: true},
		"not connected":            {Carrier: true, BitsPerSecond: 1},
		"cut":                      {Connected: true, Cut: true},
		"without carrier":          {Connected: true, BitsPerSecond: 1},
		"cut, limited to 2G bit/s": {Connected: true, Cut: true, BitsPerSecond: 2e9},
		"limited to 100M bit/s":    {Connected: true, Carrier: true, BitsPerSecond: 100e6},
		"limited to 1500 bit/s":    {Connected: true, Carrier: true, BitsPerSecond: 1500},
	} {
		if got := faultOf(state); got != want {
			t.Errorf("%+v: %q, want %q", state, got, want)
		}
	}
}
