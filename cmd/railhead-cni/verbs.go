package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"railhead/internal/cnicall"
)

// latest is the newest CNI version that is spoken.
const latest = "1.1.0"

// versions are the CNI versions that are spoken, oldest first. Results of 0.1.0
// and 0.2.0 have one address a family and no interfaces: eight rails cannot be
// said in them.
func versions() []string { return []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", latest} }

// verb is what the specification demands of a call.
type verb struct {
	since                    string // the CNI version that brought it
	container, netns, ifName bool   // which variables it needs
	result                   bool   // whether it has one
	patience                 time.Duration
	away                     uint // the code when the agent is not there
}

// Kubelet waits two minutes for its runtime, and this program less, so that users
// read the agent's reason and not kubelet's.
const (
	patience       = 100 * time.Second
	statusPatience = 10 * time.Second
)

func verbOf(command string) (verb, error) {
	v := verb{since: versions()[0], container: true, netns: true, ifName: true, patience: patience, away: cnicall.CodeTryAgain}
	switch command {
	case cnicall.Add:
		v.result = true
	case cnicall.Check:
		v.since = "0.4.0"
	case cnicall.Del:
		v.netns = false // it may be gone
	case cnicall.GC, cnicall.Status:
		v.since = "1.1.0"
		v.container, v.netns, v.ifName = false, false, false
		if command == cnicall.Status {
			v.patience, v.away = statusPatience, cnicall.CodeUnavailable
		}
	case "":
		return verb{}, failure(cnicall.CodeEnvironment, "CNI_COMMAND: missing", "want ADD, CHECK, DEL, GC, STATUS or VERSION")
	default:
		return verb{}, failure(cnicall.CodeEnvironment, "CNI_COMMAND: unknown verb "+quote(command), "want ADD, CHECK, DEL, GC, STATUS or VERSION")
	}
	return v, nil
}

// checkEnvironment names every variable that is missing, or the first that is wrong.
func (v verb) checkEnvironment(r cnicall.Request) error {
	var missing []string
	for _, need := range []struct {
		name, value string
		needed      bool
	}{{"CNI_CONTAINERID", r.ContainerID, v.container}, {"CNI_NETNS", r.NetNS, v.netns}, {"CNI_IFNAME", r.IfName, v.ifName}} {
		if need.needed && need.value == "" {
			missing = append(missing, need.name)
		}
	}
	if len(missing) > 0 {
		return failure(cnicall.CodeEnvironment, strings.Join(missing, ", ")+": missing", r.Command+" needs them")
	}
	for _, given := range []struct{ name, value string }{{"CNI_NETNS", r.NetNS}, {"CNI_ARGS", r.Args}, {"CNI_PATH", r.Path}} {
		if !utf8.ValidString(given.value) {
			return failure(cnicall.CodeEnvironment, given.name+": invalid value "+quote(given.value), "want UTF-8")
		}
	}
	if v.container && !validName(r.ContainerID) {
		return failure(cnicall.CodeEnvironment, "CNI_CONTAINERID: invalid value "+quote(r.ContainerID), nameRule)
	}
	if v.ifName && !validInterface(r.IfName) {
		return failure(cnicall.CodeEnvironment, "CNI_IFNAME: invalid value "+quote(r.IfName),
			"want 1 to 15 bytes without /, : and space, and not . or ..")
	}
	return nil
}

// checkConfig holds the configuration against the verb.
func (v verb) checkConfig(command string, c config) error {
	spoken := versions()
	at := slices.Index(spoken, c.CNIVersion)
	switch {
	case at < 0:
		version := c.CNIVersion
		if version == "" {
			version = "0.1.0" // which had no such field
		}
		return failure(cnicall.CodeVersion, "cniVersion: "+quote(version)+" is not spoken", "want one of "+strings.Join(spoken, ", "))
	case at < slices.Index(spoken, v.since):
		return failure(cnicall.CodeVersion, "cniVersion: "+quote(c.CNIVersion)+" has no "+command, "want "+v.since+" or later")
	case command == cnicall.Check && absent(c.PrevResult):
		return failure(cnicall.CodeConfig, "prevResult: missing", "CHECK compares with the result of ADD")
	case command == cnicall.GC && c.ValidAttachments == nil && c.Attachments == nil:
		// A list that is not there must not be taken for one that is empty: GC
		// would take the network of every pod.
		return failure(cnicall.CodeConfig, "cni.dev/valid-attachments: missing", "GC removes what is not listed there")
	}
	return nil
}

// checkNetNS refuses to work on the network of the node itself, as all plugins do.
func (p process) checkNetNS(v verb, path string) error {
	override := p.getenv("CNI_NETNS_OVERRIDE")
	if !v.netns || override == "1" || strings.EqualFold(override, "true") {
		return nil
	}
	theirs, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // the agent sees it as it is, and says so
	}
	if own, err := os.Stat(p.netns); err == nil && os.SameFile(own, theirs) {
		return failure(cnicall.CodeNamespace, "CNI_NETNS: "+quote(path)+" is the network namespace of the node", "want that of a container")
	}
	return nil
}

const nameRule = "want letters, digits, _, . and -, and a letter or digit first"

// validName is the rule for containers and networks.
func validName(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return s != ""
}

// validInterface is the kernel's rule for the names of interfaces.
func validInterface(s string) bool {
	return s != "" && len(s) <= 15 && s != "." && s != ".." && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(c rune) bool { return c == '/' || c == ':' || unicode.IsSpace(c) })
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
