package component

import (
	"bytes"
	_ "embed"
	"text/template"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/image"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	containerdSocket = "/run/containerd/containerd.sock"
)

//go:embed containerd.toml
var containerdTemplate string

func containerd() box.Service {
	s := service(Containerd, "--config="+containerdConfig)
	s.Ready = []string{program("ctr"), "--address=" + containerdSocket, "version"}
	return s
}

func containerdFiles() ([]box.File, error) {
	config, err := filled(containerdTemplate, map[string]string{"Pause": image.Pause, "CNIPlugins": CNIPlugins, "CNIConfig": cniConfigDir})
	return []box.File{public(containerdConfig, config)}, err
}

// filled fills in a template.
func filled(text string, values any) ([]byte, error) {
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, values)
	return out.Bytes(), err
}
