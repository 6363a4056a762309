package simulation

import (
	"strings"
	"testing"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	const environment = "PATH=/bin:/sbin\x00HOSTNAME=llama-0-x7k2p\x00EMPTY=\x00HOSTNAME=later\x00ODD\x00"
	for _, tt := range []struct {
		patterns map[string]string
		want     bool
	}{
		{map[string]string{"HOSTNAME": "llama-*"}, true},
		{map[string]string{"HOSTNAME": "llama-?-*", "PATH": "/bin:/*"}, true},
		{map[string]string{"HOSTNAME": "llama-*", "POD": "*"}, false},
		{map[string]string{"HOSTNAME": "later"}, false},
		{map[string]string{"EMPTY": ""}, true},
		{map[string]string{"ODD": ""}, true},
		{map[string]string{"HOSTNAME": "llama"}, false},
		{map[string]string{"HOSTNAME": "[a-"}, false},
	} {
		if got := matches(environment, tt.patterns); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.patterns, got, tt.want)
		}
	}
}

// FuzzMatches holds that an environment matches what it says, and nothing that no
// variable of it says.
func FuzzMatches(f *testing.F) {
	f.Add("HOSTNAME=a\x00B=c\x00")
	f.Add("=\x00\x00x")
	f.Fuzz(func(t *testing.T, environment string) {
		first := map[string]string{}
		for variable := range strings.SplitSeq(environment, "\x00") {
			name, value, _ := strings.Cut(variable, "=")
			if _, ok := first[name]; !ok {
				first[name] = value
			}
		}
		for name, value := range first {
			if strings.ContainsAny(value, `*?[\`) {
				continue
			}
			if !matches(environment, map[string]string{name: value}) {
				t.Errorf("%q does not match %s=%s", environment, name, value)
			}
			if matches(environment, map[string]string{name: value + "x"}) {
				t.Errorf("%q matches %s=%sx", environment, name, value)
			}
			absent := strings.Repeat("x", len(environment)+1)
			if matches(environment, map[string]string{name: value, absent: "*"}) {
				t.Errorf("%q matches a variable that is not there", environment)
			}
		}
	})
}
