package debian

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseInstalls(t *testing.T) {
	t.Parallel()
	const text = `NOTE: This is only a simulation!
Reading package lists...
The following NEW packages will be installed:
  libc6 libgmp10
Inst libc6 (2.43-7 Debian:unstable [amd64]) []
Inst libgmp10 (2:6.3.0+dfsg-5+b2 Debian:unstable [amd64])
Conf libc6 (2.43-7 Debian:unstable [amd64])
`
	want := []string{"libc6=2.43-7", "libgmp10=2:6.3.0+dfsg-5+b2"}
	if diff := cmp.Diff(want, Strings(parseInstalls(text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTransportSettings(t *testing.T) {
	t.Parallel()
	const dump = `APT::Update::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb";
Acquire::Languages:: "en";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::Verify-Peer "true";
`
	const want = "Acquire::http::Proxy \"http://proxy.example:3128\";\nAcquire::https::Verify-Peer \"true\";\n"
	if diff := cmp.Diff(want, transportSettings(dump)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Everything that apt writes must be below the suite's own directory.
func TestAptConfStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	const dir = "/cache/apt/sid"
	for line := range strings.Lines(aptConf(dir, "amd64", "")) {
		name, value, _ := strings.Cut(line, " ")
		reads := strings.HasPrefix(name, "Dir::Etc::netrc") // passwords for the mirror
		if strings.HasPrefix(name, "Dir::") && !reads && !strings.HasPrefix(value, `"`+dir) && value != "\"\";\n" {
			t.Errorf("outside of %s: %s", dir, line)
		}
	}
}

func TestAptSources(t *testing.T) {
	t.Parallel()
	got := aptSources(Mirror{URI: "http://mirror.example/debian"}, "trixie-backports")
	if want := "trixie-backports main\ndeb "; !strings.Contains(got, want) || !strings.HasSuffix(got, " trixie main\n") {
		t.Errorf("sources of backports: %q, want the suite below them behind", got)
	}
	got = aptSources(Mirror{URI: "http://mirror.example/debian"}, "sid")
	want := "deb [signed-by=" + debianKeyring + "] http://mirror.example/debian sid main\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
