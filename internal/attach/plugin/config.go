package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/utils"

	"railhead/internal/policy"
)

// known refuses keys that a plugin does not have. Keys are known whatever their
// case, as to package json.
func known(config []byte, own ...string) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(config, &keys); err != nil {
		return unreadable(err)
	}
	all := slices.Concat(own, commonKeys)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.ContainsFunc(all, func(k string) bool { return strings.EqualFold(k, key) }) {
			return fmt.Errorf("unknown field %q: did you mean %s? There are %s", key, policy.Nearest(key, all)[0], strings.Join(own, ", "))
		}
	}
	return nil
}

// decode reads JSON; what more there is, is left.
func decode[T any](config []byte) (T, error) {
	var read T
	if err := json.Unmarshal(config, &read); err != nil {
		return read, unreadable(err)
	}
	return read, nil
}

// unreadable says what a JSON value should have been.
func unreadable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		name := strings.TrimPrefix(strings.TrimPrefix(wrong.Field, "onMaster."), "asked.") // embedded structs
		return fmt.Errorf("field %s: is a JSON %s: want %s", name, wrong.Value, wantOf(wrong.Type.String()))
	}
	return fmt.Errorf("want a JSON object: %w", err)
}

// wantOf says what a value is to be, by the type that it is read into.
func wantOf(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "[]string":
		return "a list of texts"
	}
	return "a JSON object"
}

// badField is an error about one field of a plugin.
func badField(name string, value any, want string) error {
	return fmt.Errorf("field %s: %#v: want %s", name, value, want)
}

// asked is where a pod's wishes stand in what a plugin is given.
type asked struct {
	RuntimeConfig struct {
		MAC string `json:"mac"`
	} `json:"runtimeConfig"`
	Args struct {
		CNI struct {
			MAC string `json:"mac"`
		} `json:"cni"`
	} `json:"args"`
}

// mac is the address that a plugin is to set, by what is said most closely to the
// pod: its runtimeConfig, its arguments, its configuration; nil: none.
func (a asked) mac(configured string) (net.HardwareAddr, error) {
	for _, said := range []struct{ field, text string }{
		{"runtimeConfig.mac", a.RuntimeConfig.MAC},
		{"args.cni.mac", a.Args.CNI.MAC},
		{"mac", configured},
	} {
		if said.text != "" {
			return parseMAC(said.field, said.text)
		}
	}
	return nil, nil
}

func parseMAC(name, text string) (net.HardwareAddr, error) {
	const bytes, multicast = 6, 1
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != bytes || mac[0]&multicast != 0 || slices.Equal(mac, make(net.HardwareAddr, bytes)) {
		return nil, badField(name, text, "a MAC address of one interface, such as 02:42:ac:11:00:02")
	}
	return mac, nil
}

// checkNetdev wants a name that Linux accepts.
func checkNetdev(name, text string) error {
	if utils.ValidateInterfaceName(text) != nil {
		return badField(name, text, `the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`)
	}
	return nil
}

func checkMTU(mtu int) error {
	const least, most = 68, 65535
	if mtu != 0 && (mtu < least || mtu > most) {
		return badField("mtu", mtu, fmt.Sprintf("0 for the master's, or %d to %d", least, most))
	}
	return nil
}

// oneOf wants a text of a list. The empty text is for the first of them.
func oneOf(name, text string, list ...string) error {
	if text == "" || slices.Contains(list, text) {
		return nil
	}
	last := len(list) - 1
	return badField(name, text, strings.Join(list[:last], ", ")+" or "+list[last])
}
