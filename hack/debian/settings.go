package debian

import (
	"context"
	"fmt"
	"os"
	"strings"

	"railhead/hack/program"
)

// configure writes apt's configuration and tells whether it is another than before.
func (s *Suite) configure(ctx context.Context) (changed bool, err error) {
	transport, err := hostTransport(ctx)
	if err != nil {
		return false, err
	}
	for file, text := range map[string]string{
		// Of what backports and the suite below them have, the backports' is taken, which is for each other.
		"etc/apt.conf.d/release": fmt.Sprintf("APT::Default-Release %q;\n", s.Suite),
		"status":                 "", "etc/sources.list": aptSources(s.Mirror, s.Suite), "apt.conf": aptConf(s.Dir, s.Architecture, transport),
	} {
		wrote, err := writeChanged(s.path(file), text)
		if err != nil {
			return false, err
		}
		changed = changed || wrote
	}
	return changed, nil
}

// writeChanged writes a file unless it has that content already: apt takes a new date for a change, and indexes
// everything again.
func writeChanged(path, text string) (bool, error) {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == text {
		return false, nil
	}
	return true, os.WriteFile(path, []byte(text), 0o644)
}

// aptSources are the suite, and where it holds backports, the suite below them.
func aptSources(from Mirror, suite string) string {
	keyring := from.Keyring
	if keyring == "" {
		keyring = debianKeyring
	}
	text := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, from.URI, suite)
	if below, ok := strings.CutSuffix(suite, "-backports"); ok {
		text += aptSources(from, below)
	}
	return text
}

// aptConf keeps apt within dir. The machine's own configuration is not read, as it may have hooks that work on the
// machine's own cache; what it says of the way to the mirror is passed in as transport.
func aptConf(dir, architecture, transport string) string {
	return fmt.Sprintf(`Dir::Etc "%[1]s/etc";
Dir::Etc::netrc "/etc/apt/auth.conf";
Dir::Etc::netrcparts "/etc/apt/auth.conf.d";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Cache::srcpkgcache "";
APT::Architecture "%[2]s";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "3";
// A machine whose clock is off would call a rolling suite expired. Signatures are still checked.
Acquire::Check-Valid-Until "false";
Acquire::Check-Date "false";
%[3]s`, dir, architecture, transport)
}

// hostTransport is what the machine's apt configuration says of HTTP: proxies above all.
func hostTransport(ctx context.Context) (string, error) {
	out, err := program.Output(program.Command(ctx, "apt-config", "dump", "--no-empty"))
	if err != nil {
		return "", err
	}
	return transportSettings(string(out)), nil
}

// transportSettings are the lines of a configuration dump about HTTP.
func transportSettings(dump string) string {
	var kept strings.Builder
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, "Acquire::http") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
