package debian

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// debianKeyring is where the package debian-archive-keyring puts the archive's keys.
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Mirror is a Debian mirror and the keys that sign it.
type Mirror struct {
	URI     string
	Keyring string // a file; empty: that of the package debian-archive-keyring
}

// HostMirror is the Debian mirror that this machine's apt is set up with, in either of apt's two forms.
func HostMirror() (Mirror, error) {
	files, err := filepath.Glob("/etc/apt/sources.list.d/*")
	if err != nil {
		return Mirror{}, err
	}
	files = append([]string{"/etc/apt/sources.list"}, files...)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Mirror{}, err
		}
		var entries []aptSource
		switch filepath.Ext(file) {
		case ".list":
			entries = parseSourcesList(string(raw))
		case ".sources":
			entries = parseDeb822Sources(string(raw))
		}
		if m, ok := debianMirror(entries); ok {
			return m, nil
		}
	}
	return Mirror{}, fmt.Errorf("no Debian mirror in the apt sources %s: name one", strings.Join(files, ", "))
}

// aptSource is one entry of apt's sources.
type aptSource struct {
	Types, URIs, Suites, Components []string
	SignedBy                        string // a file; empty when absent or an inline key
}

// debianMirror is the first entry that serves Debian's main archive. Security and third-party archives have another
// last element in their path, or no component main.
func debianMirror(entries []aptSource) (Mirror, bool) {
	for _, e := range entries {
		if !slices.Contains(e.Types, "deb") || !slices.Contains(e.Components, "main") {
			continue
		}
		for _, uri := range e.URIs {
			if uri = strings.TrimRight(uri, "/"); strings.HasSuffix(uri, "/debian") {
				return Mirror{URI: uri, Keyring: e.SignedBy}, true
			}
		}
	}
	return Mirror{}, false
}

// parseSourcesList parses the one-line form: type [options] uri suite component...
func parseSourcesList(text string) []aptSource {
	var entries []aptSource
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		e := aptSource{Types: []string{kind}}
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			options, after, _ := strings.Cut(rest[1:], "]")
			for option := range strings.FieldsSeq(options) {
				if name, value, _ := strings.Cut(option, "="); strings.EqualFold(name, "signed-by") {
					e.SignedBy = keyFile(value)
				}
			}
			rest = after
		}
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			continue
		}
		e.URIs, e.Suites, e.Components = fields[:1], fields[1:2], fields[2:]
		entries = append(entries, e)
	}
	return entries
}

// parseDeb822Sources parses the stanza form; stanzas that are not enabled are left out.
func parseDeb822Sources(text string) []aptSource {
	var entries []aptSource
	e, enabled := aptSource{}, true
	flush := func() {
		if enabled && len(e.URIs) > 0 {
			entries = append(entries, e)
		}
		e, enabled = aptSource{}, true
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			flush()
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found || strings.HasPrefix(line, "#") || strings.HasPrefix(line, " ") {
			continue // a comment, or an inline key's next line
		}
		switch value = strings.TrimSpace(value); strings.ToLower(name) {
		case "types":
			e.Types = strings.Fields(value)
		case "uris":
			e.URIs = strings.Fields(value)
		case "suites":
			e.Suites = strings.Fields(value)
		case "components":
			e.Components = strings.Fields(value)
		case "signed-by":
			e.SignedBy = keyFile(value)
		case "enabled":
			enabled = !strings.EqualFold(value, "no")
		}
	}
	flush()
	return entries
}

// keyFile is a Signed-By value where it names a file.
func keyFile(value string) string {
	if filepath.IsAbs(value) {
		return value
	}
	return ""
}
