package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"railhead/internal/cnicall"
)

const (
	// defaultSocket is where the agent serves calls.
	defaultSocket = "/run/railhead/cni.sock"

	// maxConfig leaves room in a message for what is not the configuration.
	maxConfig = cnicall.MaxMessage - 1<<16

	maxTimeoutSeconds = 3600
)

// config is what this program reads of a configuration. All else is the agent's.
type config struct {
	CNIVersion       string          `json:"cniVersion"`
	Name             string          `json:"name"`
	PrevResult       json.RawMessage `json:"prevResult"`
	ValidAttachments json.RawMessage `json:"cni.dev/valid-attachments"`
	Attachments      json.RawMessage `json:"cni.dev/attachments"` // as it stood in the specification once

	Socket         string  `json:"socket"`         // a path; empty: the default
	TimeoutSeconds float64 `json:"timeoutSeconds"` // 0: the default
}

// readConfig reads standard input.
func (p process) readConfig() (json.RawMessage, error) {
	data, err := io.ReadAll(io.LimitReader(p.stdin, maxConfig+1))
	if err != nil {
		return nil, failure(cnicall.CodeIO, "cannot read the network configuration from standard input", err.Error())
	}
	if len(data) > maxConfig {
		return nil, failure(cnicall.CodeIO, "the network configuration on standard input is too long", fmt.Sprintf("want at most %d bytes", maxConfig))
	}
	return data, nil
}

// parseConfig reads a configuration and refuses what no plugin may take.
func parseConfig(data []byte) (config, error) {
	var c config
	if err := json.Unmarshal(data, &c); err != nil {
		return c, failure(cnicall.CodeDecode, "cannot decode the network configuration", err.Error())
	}
	switch {
	case c.Name == "":
		return c, failure(cnicall.CodeConfig, "name: missing", "want the name of the network")
	case !validName(c.Name):
		return c, failure(cnicall.CodeConfig, "name: invalid value "+quote(c.Name), nameRule)
	case c.TimeoutSeconds < 0 || c.TimeoutSeconds > maxTimeoutSeconds:
		return c, failure(cnicall.CodeConfig, fmt.Sprintf("timeoutSeconds: invalid value %v", c.TimeoutSeconds), fmt.Sprintf("want 0 to %d", maxTimeoutSeconds))
	case c.Socket == "":
		c.Socket = defaultSocket
	case c.Socket[0] != '/':
		return c, failure(cnicall.CodeConfig, "socket: invalid value "+quote(c.Socket), "want an absolute path")
	}
	return c, nil
}

// timeout is how long the agent has.
func (c config) timeout(v verb) time.Duration {
	if c.TimeoutSeconds > 0 {
		return time.Duration(c.TimeoutSeconds * float64(time.Second))
	}
	return v.patience
}

// spoken is the CNI version of errors: that of the configuration, if it is one.
func (c config) spoken() string {
	if slices.Contains(versions(), c.CNIVersion) {
		return c.CNIVersion
	}
	return latest
}

// version answers VERSION, which takes no agent. What cannot be read is as if
// nothing were there, since all plugins answer this.
func (p process) version() (json.RawMessage, error) {
	asked := struct {
		CNIVersion string `json:"cniVersion"`
	}{}
	data, err := p.readConfig()
	if err != nil || json.Unmarshal(data, &asked) != nil || asked.CNIVersion == "" {
		asked.CNIVersion = latest
	}
	return json.Marshal(struct {
		CNIVersion        string   `json:"cniVersion"`
		SupportedVersions []string `json:"supportedVersions"`
	}{asked.CNIVersion, versions()})
}

func quote(s string) string { return strconv.Quote(s) }
