// Command railhead-cni is what a container runtime starts for each CNI call. It
// passes the call to the agent of its node over a unix socket and prints the
// answer. It looks at a call only as far as the CNI specification demands of
// every plugin; what a network means, the agent knows.
//
// It does the same under any name, and tells the agent which one it was: so a
// network may ask for spiderpool, coordinator, rdma, sriov, ib-sriov, ipoib or
// ifacer below another runtime of networks, and is served by the agent.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"railhead/internal/cnicall"
)

func main() {
	p := process{
		name:   filepath.Base(os.Args[0]),
		getenv: os.Getenv,
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		netns:  "/proc/self/ns/net",
	}
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.stdin = strings.NewReader("") // a terminal, which would never end
	}
	os.Exit(p.run())
}

// process is what a runtime gives to a plugin.
type process struct {
	name           string // it was started by
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	netns          string // a path of its own network namespace
}

// run makes one call and returns the exit status.
func (p process) run() int {
	if p.getenv("CNI_COMMAND") == "" {
		fmt.Fprintf(p.stderr, "%s is a CNI plugin of Railhead: container runtimes start it.\nCNI versions: %s\n",
			p.name, strings.Join(versions(), ", "))
	}
	output, version, err := p.answer()
	if err == nil && len(output) > 0 {
		_, err = p.stdout.Write(append(output, '\n'))
	}
	if err == nil {
		return 0
	}
	p.printError(version, err)
	return 1
}

// answer returns what is to be printed, and the CNI version to speak.
func (p process) answer() (json.RawMessage, string, error) {
	command := p.getenv("CNI_COMMAND")
	if command == cnicall.Version {
		output, err := p.version()
		return output, latest, err
	}
	v, err := verbOf(command)
	if err != nil {
		return nil, latest, err
	}
	request := cnicall.Request{
		Command:     command,
		ContainerID: p.getenv("CNI_CONTAINERID"),
		NetNS:       p.getenv("CNI_NETNS"),
		IfName:      p.getenv("CNI_IFNAME"),
		Args:        p.getenv("CNI_ARGS"),
		Path:        p.getenv("CNI_PATH"),
		Programs:    strings.ToValidUTF8(p.getenv("PATH"), ""),
		Plugin:      p.name,
	}
	if err := v.checkEnvironment(request); err != nil {
		return nil, latest, err
	}
	if request.Config, err = p.readConfig(); err != nil {
		return nil, latest, err
	}
	conf, err := parseConfig(request.Config)
	if err != nil {
		return nil, conf.spoken(), err
	}
	if err = v.checkConfig(command, conf); err == nil {
		err = p.checkNetNS(v, request.NetNS)
	}
	if err != nil {
		return nil, conf.spoken(), err
	}
	output, err := call(v, conf, request)
	return output, conf.spoken(), err
}

// call asks the agent.
func call(v verb, conf config, request cnicall.Request) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), conf.timeout(v))
	defer cancel()
	answer, err := cnicall.Call(ctx, conf.Socket, request)
	switch {
	case err != nil:
		return nil, unanswered(v, conf.Socket, err)
	case answer.Error != nil:
		return nil, answer.Error
	case !v.result:
		return nil, nil
	case len(answer.Output) == 0:
		return nil, failure(cnicall.CodeInternal, "the agent answers "+request.Command+" without a result", "")
	}
	return answer.Output, nil
}

// unanswered is the error of a call that the agent did not answer.
//
// It is one that passes, for DEL as well. The runtime would take a success for
// the end of the pod's network, and nobody would run DEL of the cluster's own
// network, or of another plugin in a chain, ever again: only the agent knows what
// was attached. So kubelet asks again, and the pod stays Terminating until an
// agent answers. What is ours would be found by the agent from its records
// either way. Once Railhead is uninstalled, the runtime calls the cluster's own
// network directly and not this program.
func unanswered(v verb, socket string, err error) error {
	code := v.away
	msg := "no answer from the Railhead agent at " + socket
	switch {
	case errors.Is(err, cnicall.ErrAway):
		msg = "the Railhead agent is not there at " + socket + "; see that it runs on this node"
	case errors.Is(err, cnicall.ErrProtocol):
		msg = "the Railhead agent at " + socket + " is of another release than this program, which it will replace"
	}
	return failure(code, msg, err.Error())
}

// printError prints an error as the specification wants it.
func (p process) printError(version string, err error) {
	var e *cnicall.Error
	if !errors.As(err, &e) {
		e = failure(cnicall.CodeInternal, err.Error(), "")
	}
	said, err := json.MarshalIndent(struct {
		CNIVersion string `json:"cniVersion"`
		*cnicall.Error
	}{version, e}, "", "    ")
	if err == nil {
		_, err = p.stdout.Write(append(said, '\n'))
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "%s: %v; and it cannot be printed: %v\n", p.name, e, err)
	}
}

func failure(code uint, msg, details string) *cnicall.Error {
	return &cnicall.Error{Code: code, Msg: msg, Details: details}
}
