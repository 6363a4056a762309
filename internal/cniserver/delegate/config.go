package delegate

import (
	"encoding/json"
	"errors"
	"fmt"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

// WithPrevResult is a plugin's configuration with a result as prevResult, in the
// version of the configuration: for ADD that of the plugin before, for CHECK and
// DEL that of the last plugin of the chain. Configurations before 0.3.0 stay as
// they are, which have no chains; before 0.4.0, CHECK and DEL do not take one, and
// the caller is not to ask for it. What else the configuration has stays as
// written.
func WithPrevResult(config []byte, result *types100.Result) ([]byte, error) {
	spoken, takes, err := speaks(config, "0.3.0")
	if err != nil || !takes {
		return config, err
	}
	converted, err := result.GetAsVersion(spoken)
	if err != nil {
		return nil, fmt.Errorf("prevResult in the configuration's cniVersion %s: %w", spoken, err)
	}
	return with(config, map[string]any{"prevResult": converted})
}

// speaks is the CNI version of a configuration, and whether it is a certain one
// or a later.
func speaks(config []byte, first string) (spoken string, has bool, err error) {
	if spoken, err = (&version.ConfigDecoder{}).Decode(config); err != nil {
		return "", false, err
	}
	if has, err = version.GreaterThanOrEqualTo(spoken, first); err != nil {
		return "", false, fmt.Errorf("cniVersion: %w", err)
	}
	return spoken, has, nil
}

// with is a configuration with values set.
func with(config []byte, values map[string]any) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &fields); err != nil {
		return nil, fmt.Errorf("configuration: want a JSON object: %w", err)
	}
	if fields == nil { // it was null
		return nil, errors.New("configuration: is null, want a JSON object")
	}
	for key, value := range values {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("configuration: %s: %w", key, err)
		}
		fields[key] = raw
	}
	return json.Marshal(fields)
}
