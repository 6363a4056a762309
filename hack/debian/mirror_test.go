package debian

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDebianMirror(t *testing.T) {
	t.Parallel()
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	tests := []struct {
		name  string
		parse func(string) []aptSource
		text  string
		want  Mirror // zero: none
	}{
		{
			name:  "one line",
			parse: parseSourcesList,
			text:  "# deb http://old.example/debian bookworm main\ndeb http://mirror.example/debian/ bookworm main contrib\n",
			want:  Mirror{URI: "http://mirror.example/debian"},
		},
		{
			name:  "one line with options",
			parse: parseSourcesList,
			text:  "deb [arch=amd64 signed-by=" + keyring + "] https://mirror.example/debian trixie main # ours\n",
			want:  Mirror{URI: "https://mirror.example/debian", Keyring: keyring},
		},
		{
			name:  "sources, other archives and flat repositories are not it",
			parse: parseSourcesList,
			text: "deb-src http://mirror.example/debian trixie main\ndeb http://mirror.example/debian-security trixie-security main\n" +
				"deb http://tools.example/debian tools extra\ndeb http://flat.example/debian ./\n\n",
		},
		{
			name:  "stanzas",
			parse: parseDeb822Sources,
			text: "# first\nTypes: deb deb-src\nURIs: http://other.example/ubuntu\nSuites: noble\nComponents: main\n\n" +
				"Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: sid\nComponents: main\nSigned-By: " + keyring + "\n",
			want: Mirror{URI: "http://mirror.example/debian", Keyring: keyring},
		},
		{
			name:  "stanza with an inline key",
			parse: parseDeb822Sources,
			text: "Types: deb\nURIs: http://mirror.example/debian\nSuites: sid\nComponents: main\n" +
				"Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n Version: x\n",
			want: Mirror{URI: "http://mirror.example/debian"},
		},
		{
			name:  "stanza that is off",
			parse: parseDeb822Sources,
			text:  "Types: deb\nURIs: http://mirror.example/debian\nSuites: sid\nComponents: main\nEnabled: no\n",
		},
		{
			name:  "stanzas, nothing",
			parse: parseDeb822Sources,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := debianMirror(tt.parse(tt.text))
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != Mirror{}) {
				t.Errorf("found %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}
