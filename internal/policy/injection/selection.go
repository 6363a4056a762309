package injection

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"railhead/internal/policy/annotation"
)

// maxInterfaceName is what the kernel takes, IFNAMSIZ less the zero.
const maxInterfaceName = 15

// selection is one element of the list.
type selection struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"` // "": that of the pod
	Interface string `json:"interface,omitempty"`

	OldInterface string `json:"interfaceRequest,omitempty"` // as Multus had it; "" once it was read

	written json.RawMessage // the element with all its keys, nil in the short form
}

// parseSelections reads a list in either form. As Multus does, it takes for JSON
// what has a bracket, a brace or a quote in it.
func parseSelections(list string) ([]selection, error) {
	switch {
	case strings.TrimSpace(list) == "":
		return nil, nil
	case strings.ContainsAny(list, `[{"`):
		return parseJSON(list)
	default:
		return parseShort(list)
	}
}

func parseJSON(list string) ([]selection, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(list), &elements); err != nil {
		return nil, fmt.Errorf("is no JSON list of networks: want [{\"name\": …, \"namespace\": …}, …] (%w)", plain(err))
	}
	selections := make([]selection, len(elements))
	for i, element := range elements {
		s := &selections[i]
		if err := json.Unmarshal(element, s); err != nil {
			return nil, fmt.Errorf("element %d of the list: %w", i+1, plain(err))
		}
		s.Interface, s.OldInterface = cmp.Or(s.Interface, s.OldInterface), ""
		if s.Name == "" {
			return nil, fmt.Errorf("element %d of the list names no network: want the key \"name\"", i+1)
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("element %d of the list: %w", i+1, err)
		}
		if unknown := annotation.UnknownKeys(nil, element); len(unknown) > 0 {
			return nil, fmt.Errorf("element %d of the list: %w", i+1, unknown.ToAggregate())
		}
		s.written = element
	}
	return selections, nil
}

// plain says what is of the wrong type, without our names for it.
func plain(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field == "" {
		return fmt.Errorf("found a JSON %s", wrong.Value)
	}
	return fmt.Errorf("key %q is a JSON %s: want a %s", wrong.Field, wrong.Value, wrong.Type)
}

func parseShort(list string) ([]selection, error) {
	var selections []selection
	for item := range strings.SplitSeq(list, ",") {
		s, err := parseItem(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("item %d of the list, %q: %w: want [namespace/]name[@interface]", len(selections)+1, item, err)
		}
		selections = append(selections, s)
	}
	return selections, nil
}

// parseItem reads "[namespace/]name[@interface]".
func parseItem(item string) (selection, error) {
	var s selection
	namespace, rest, qualified := strings.Cut(item, "/")
	if !qualified {
		rest = item
	} else if s.Namespace = strings.TrimSpace(namespace); s.Namespace == "" {
		return selection{}, errors.New("no namespace before \"/\"")
	}
	name, netdev, named := strings.Cut(rest, "@")
	s.Name, s.Interface = strings.TrimSpace(name), strings.TrimSpace(netdev)
	if named && s.Interface == "" {
		return selection{}, errors.New("no interface after \"@\"")
	}
	return s, s.check()
}

// check wants names that there can be. A namespace and an interface may be absent.
func (s *selection) check() error {
	switch netdev := s.Interface; {
	case s.Namespace != "" && len(validation.IsDNS1123Label(s.Namespace)) > 0:
		return fmt.Errorf("%q is no name of a namespace", s.Namespace)
	case len(validation.IsDNS1123Subdomain(s.Name)) > 0:
		return fmt.Errorf("%q is no name of a network", s.Name)
	case len(netdev) > maxInterfaceName:
		return fmt.Errorf("interface %q is longer than %d bytes", netdev, maxInterfaceName)
	case strings.ContainsFunc(netdev, notInInterfaces), netdev == ".", netdev == "..":
		return fmt.Errorf("interface %q: want a name without \"/\", \":\", \"@\" and white space", netdev)
	}
	return nil
}

func notInInterfaces(r rune) bool {
	return strings.ContainsRune("/:@", r) || r == utf8.RuneError || unicode.IsSpace(r)
}

// formatSelections writes a list in the JSON form. Elements that were in it before
// keep all their keys.
func formatSelections(list []selection) (string, error) {
	out := bytes.NewBufferString("[")
	for i, s := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		element := s.written
		if element == nil {
			var err error
			if element, err = json.Marshal(s); err != nil {
				return "", err
			}
		}
		if err := json.Compact(out, element); err != nil {
			return "", err
		}
	}
	out.WriteByte(']')
	return out.String(), nil
}
