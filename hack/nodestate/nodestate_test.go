package nodestate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node answers commands by their first words.
func node(answers map[string]string) func(...string) (string, error) {
	return func(command ...string) (string, error) {
		for begins, answer := range answers {
			if strings.HasPrefix(command[2], begins) {
				return answer, nil
			}
		}
		return "", nil
	}
}

// TestRead wants two looks at one state to be equal, whatever changes by itself,
// and a link more to be seen.
func TestRead(t *testing.T) {
	t.Parallel()
	read := func(answers map[string]string) State {
		t.Helper()
		s, err := Read(node(answers))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := read(map[string]string{
		"ip -o link":  "2: eth0@if7: <BROADCAST,UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000\\    link/ether 02:72:68:00:00:01 brd ff:ff:ff:ff:ff:ff link-netnsid 0\n",
		"ip -o addr":  "2: eth0    inet 10.99.0.11/24 scope global eth0\\       valid_lft forever preferred_lft forever\n2: eth0    inet6 fe80::1/64 scope link\n",
		"ip -4 rule":  "0:\tfrom all lookup local\n",
		"ip -4 route": "local fe80::1 dev eth0 table local proto kernel metric 0 pref medium\nfe80::/64 dev eth0 proto kernel metric 256 pref medium\n",
	})
	after := map[string]string{
		"ip -o link":  "3: eth0@if9: <BROADCAST> mtu 1400 qdisc noqueue state DOWN mode DEFAULT group default qlen 10\\    link/ether 02:72:68:00:00:01 brd ff:ff:ff:ff:ff:ff link-netnsid 1\n",
		"ip -o addr":  "3: eth0    inet 10.99.0.11/24 scope global eth0\\       valid_lft 12sec preferred_lft 12sec\n3: eth0    inet6 fe80::1/64 scope link tentative\n",
		"ip -4 rule":  "0:\tfrom all lookup local\n",
		"ip -4 route": "fe80::/64 dev eth0 proto kernel metric 256 pref medium\n",
	}
	if diff := cmp.Diff(before, read(after)); diff != "" {
		t.Errorf("the same (-before +after):\n%s", diff)
	}
	after["ip -o link"] += "4: net1@enp11s0f0np0: <UP> mtu 9000 qdisc noqueue state UP group 21064\\    link/ether 02:00:ac:10:0b:01 brd ff:ff:ff:ff:ff:ff\n"
	after["ip -4 rule"] += "1000:\tfrom all lookup 500\n"
	got := read(after)
	if len(got["links"]) != 2 || !strings.HasPrefix(got["links"][1], "net1@enp11s0f0np0: group 21064") {
		t.Errorf("links %q, want net1 among them", got["links"])
	}
	if want := []string{"0: from all lookup local", "1000: from all lookup 500"}; !cmp.Equal(want, got["rules"]) {
		t.Errorf("rules %q, want %q", got["rules"], want)
	}
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := Read(func(...string) (string, error) { return "", broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), "links") {
		t.Errorf("error %v, want %v and what was looked at", err, broken)
	}
}
