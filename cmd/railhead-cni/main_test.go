package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/cnicall"
)

// agent serves a handler until the test ends, and returns its socket.
func agent(tb testing.TB, handler cnicall.Handler) string {
	tb.Helper()
	socket := filepath.Join(tb.TempDir(), "cni.sock")
	l, err := cnicall.Listen(socket)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- cnicall.Serve(ctx, l, handler, cnicall.Limits{Report: func(err error) { tb.Error(err) }})
	}()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	return socket
}

// outcome is what a runtime sees of a call.
type outcome struct {
	Code   int
	Stdout string
}

// start runs the program's code with variables and standard input.
func start(t *testing.T, env map[string]string, stdin io.Reader) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := process{
		name:   "spiderpool",
		getenv: func(key string) string { return env[key] },
		stdin:  stdin, stdout: &stdout, stderr: &stderr,
		netns: "/proc/self/ns/net",
	}
	code := p.run()
	if (stderr.Len() > 0) != (env["CNI_COMMAND"] == "") {
		t.Errorf("stderr: %s", &stderr)
	}
	return outcome{code, stdout.String()}
}

// fault is the error in an outcome.
func (o outcome) fault(t *testing.T) (version string, e cnicall.Error) {
	t.Helper()
	var said struct {
		CNIVersion string
		cnicall.Error
	}
	d := json.NewDecoder(strings.NewReader(o.Stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil || o.Code == 0 || said.Code == 0 {
		t.Fatalf("exit %d, %v, want an error: %s", o.Code, err, o.Stdout)
	}
	return said.CNIVersion, said.Error
}

func call4(command string, change map[string]string) map[string]string {
	env := map[string]string{
		"CNI_COMMAND": command, "CNI_CONTAINERID": "c1", "CNI_NETNS": "/run/netns/none",
		"CNI_IFNAME": "net1", "CNI_ARGS": "K8S_POD_NAME=p", "CNI_PATH": "/opt/cni/bin",
	}
	maps.Copy(env, change)
	return env
}

const conf = `{"cniVersion":"1.1.0","name":"n","type":"spiderpool","prevResult":{"ips":[]},"cni.dev/valid-attachments":[],"socket":"`

// TestPasses sends all of a call to the agent, and its answer to the runtime.
func TestPasses(t *testing.T) {
	t.Parallel()
	requests := make(chan cnicall.Request, 1)
	socket := agent(t, func(_ context.Context, r cnicall.Request) cnicall.Answer {
		requests <- r
		return cnicall.Answer{Output: json.RawMessage(`{"cniVersion":"1.1.0","dns":{},"n":12345678901234567890,"s":"<&>"}`)}
	})
	config := conf + socket + `","runtimeConfig":{"mac":"<&>"}}`
	for _, command := range []string{"ADD", "CHECK", "DEL", "GC", "STATUS"} {
		want := outcome{}
		if command == "ADD" {
			want.Stdout = `{"cniVersion":"1.1.0","dns":{},"n":12345678901234567890,"s":"<&>"}` + "\n"
		}
		if d := cmp.Diff(want, start(t, call4(command, nil), strings.NewReader(config))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", command, d)
		}
		sent := cnicall.Request{
			Command: command, ContainerID: "c1", NetNS: "/run/netns/none", IfName: "net1",
			Args: "K8S_POD_NAME=p", Path: "/opt/cni/bin", Plugin: "spiderpool", Config: json.RawMessage(config),
		}
		if d := cmp.Diff(sent, <-requests); d != "" {
			t.Errorf("%s: (-want +got)\n%s", command, d)
		}
	}
}

// TestAgentsErrors reach the runtime as they are, in the version of its configuration.
func TestAgentsErrors(t *testing.T) {
	t.Parallel()
	answer := cnicall.Answer{Error: &cnicall.Error{Code: 110, Msg: "network n: rail 3", Details: "gateway 10.3.0.1: no answer in 2 s"}}
	socket := agent(t, func(context.Context, cnicall.Request) cnicall.Answer { return answer })
	for _, spoken := range []string{"0.4.0", "1.0.0"} {
		got := start(t, call4("ADD", nil), strings.NewReader(strings.Replace(conf, "1.1.0", spoken, 1)+socket+`"}`))
		version, e := got.fault(t)
		if d := cmp.Diff(*answer.Error, e); d != "" || version != spoken {
			t.Errorf("version %s: (-want +got)\n%s", version, d)
		}
	}
	answer = cnicall.Answer{}
	if _, e := start(t, call4("ADD", nil), strings.NewReader(conf+socket+`"}`)).fault(t); e.Code != cnicall.CodeInternal || e.Msg != "the agent answers ADD without a result" {
		t.Errorf("got %+v", e)
	}
}

// TestAway says that it passes, and where the agent was looked for.
func TestAway(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "cni.sock")
	for _, c := range []struct {
		command string
		code    uint
	}{{"ADD", 11}, {"CHECK", 11}, {"DEL", 11}, {"GC", 11}, {"STATUS", 50}} {
		version, e := start(t, call4(c.command, nil), strings.NewReader(conf+socket+`"}`)).fault(t)
		want := "the Railhead agent is not there at " + socket + "; see that it runs on this node"
		if e.Code != c.code || e.Msg != want || !strings.Contains(e.Details, "no such file") || version != "1.1.0" {
			t.Errorf("%s: got %s, %+v", c.command, version, e)
		}
	}
	if _, e := start(t, call4("ADD", nil), strings.NewReader(conf+`"}`)).fault(t); e.Code != 11 && !strings.Contains(e.Msg, defaultSocket) {
		t.Errorf("no socket in the configuration: got %+v", e)
	}
}

// TestLate waits no longer than it is told, and tells a late agent from one that is away.
func TestLate(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "silent.sock")
	l, err := net.Listen("unix", socket) // the kernel connects, and nobody reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for command, code := range map[string]uint{"DEL": 11, "STATUS": 50} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			_, e := start(t, call4(command, nil), strings.NewReader(conf+socket+`","timeoutSeconds":2}`)).fault(t)
			if e.Code != code || e.Msg != "no answer from the Railhead agent at "+socket || !strings.Contains(e.Details, "deadline exceeded") {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// TestAnotherRelease is what an upgrade looks like for a moment.
func TestAnotherRelease(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "new.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Write([]byte("RHC\x02\x00\x00\x00\x00"))
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	if _, e := start(t, call4("ADD", nil), strings.NewReader(conf+socket+`"}`)).fault(t); e.Code != 11 || !strings.Contains(e.Msg, "another release") {
		t.Errorf("got %+v", e)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	ok := conf + `/none"}`
	with := func(from, to string) string { return strings.Replace(ok, from, to, 1) }
	for _, c := range []struct {
		name, command string
		env           map[string]string
		stdin         string
		code          uint
		want          string // of message and details
	}{
		{"no verb", "", nil, ok, 4, "CNI_COMMAND: missing: want ADD,"},
		{"unknown verb", "add", nil, ok, 4, `CNI_COMMAND: unknown verb "add"`},
		{"nothing of ADD", "ADD", map[string]string{"CNI_CONTAINERID": "", "CNI_NETNS": "", "CNI_IFNAME": ""}, ok, 4, "CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME: missing: ADD needs them"},
		{"nothing of CHECK", "CHECK", map[string]string{"CNI_NETNS": ""}, ok, 4, "CNI_NETNS: missing"},
		{"nothing of DEL", "DEL", map[string]string{"CNI_CONTAINERID": "", "CNI_NETNS": ""}, ok, 4, "CNI_CONTAINERID: missing"},
		{"container", "ADD", map[string]string{"CNI_CONTAINERID": "../a"}, ok, 4, `CNI_CONTAINERID: invalid value "../a": want letters`},
		{"long interface", "ADD", map[string]string{"CNI_IFNAME": "sixteen-letters0"}, ok, 4, `CNI_IFNAME: invalid value "sixteen-letters0": want 1 to 15`},
		{"interface with a space", "DEL", map[string]string{"CNI_IFNAME": "a b"}, ok, 4, "CNI_IFNAME: invalid"},
		{"path not UTF-8", "GC", map[string]string{"CNI_PATH": "\xff"}, ok, 4, `CNI_PATH: invalid value "\xff": want UTF-8`},
		{"interface ..", "ADD", map[string]string{"CNI_IFNAME": ".."}, ok, 4, "CNI_IFNAME: invalid"},
		{"the node's own network", "ADD", map[string]string{"CNI_NETNS": "/proc/thread-self/ns/net"}, ok, 8, "is the network namespace of the node"},
		{"no configuration", "ADD", nil, "", 6, "cannot decode the network configuration: unexpected end"},
		{"no object", "DEL", nil, `[]`, 6, "cannot decode"},
		{"more than one", "ADD", nil, ok + ok, 6, "cannot decode"},
		{"version of a wrong type", "ADD", nil, with(`"1.1.0"`, `1.1`), 6, "cniVersion"},
		{"no name", "ADD", nil, with(`"name":"n",`, ``), 7, "name: missing"},
		{"bad name", "ADD", nil, with(`"name":"n"`, `"name":"a/b"`), 7, `name: invalid value "a/b"`},
		{"relative socket", "ADD", nil, with(`/none`, `none`), 7, `socket: invalid value "none": want an absolute path`},
		{"no time", "ADD", nil, with(`"name"`, `"timeoutSeconds":-1,"name"`), 7, "timeoutSeconds: invalid value -1: want 0 to 3600"},
		{"no version", "ADD", nil, with(`"cniVersion":"1.1.0",`, ``), 1, `cniVersion: "0.1.0" is not spoken: want one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0`},
		{"0.1.0", "DEL", nil, with(`1.1.0`, `0.1.0`), 1, `"0.1.0" is not spoken`},
		{"0.2.0", "ADD", nil, with(`1.1.0`, `0.2.0`), 1, `"0.2.0" is not spoken`},
		{"to come", "ADD", nil, with(`1.1.0`, `1.2.0`), 1, `"1.2.0" is not spoken`},
		{"CHECK too early", "CHECK", nil, with(`1.1.0`, `0.3.1`), 1, `"0.3.1" has no CHECK: want 0.4.0 or later`},
		{"GC too early", "GC", nil, with(`1.1.0`, `1.0.0`), 1, `"1.0.0" has no GC: want 1.1.0 or later`},
		{"STATUS too early", "STATUS", nil, with(`1.1.0`, `1.0.0`), 1, "has no STATUS"},
		{"CHECK of nothing", "CHECK", nil, with(`"prevResult":{"ips":[]},`, ``), 7, "prevResult: missing"},
		{"CHECK of null", "CHECK", nil, with(`{"ips":[]}`, `null`), 7, "prevResult: missing"},
		{"GC of all", "GC", nil, with(`"cni.dev/valid-attachments":[],`, ``), 7, "cni.dev/valid-attachments: missing"},
		{"too long", "ADD", nil, strings.Repeat(" ", maxConfig) + ok, 5, "too long: want at most " + strconv.Itoa(maxConfig)},
		{"not UTF-8", "ADD", map[string]string{"CNI_ARGS": "\xff"}, ok, 4, `CNI_ARGS: invalid value "\xff"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, e := start(t, call4(c.command, c.env), strings.NewReader(c.stdin)).fault(t)
			if e.Code != c.code || !strings.Contains(e.Error(), c.want) {
				t.Errorf("got %d %s, want %d %s", e.Code, e.Error(), c.code, c.want)
			}
		})
	}
	_, e := start(t, call4("ADD", nil), iotest.ErrReader(errors.New("torn"))).fault(t)
	if e.Code != 5 || !strings.Contains(e.Details, "torn") {
		t.Errorf("broken standard input: got %+v", e)
	}
}

// TestDelWithoutNamespace passes what other verbs must have.
func TestDelWithoutNamespace(t *testing.T) {
	t.Parallel()
	socket := agent(t, func(context.Context, cnicall.Request) cnicall.Answer { return cnicall.Answer{} })
	for _, env := range []map[string]string{{"CNI_NETNS": ""}, {"CNI_NETNS": "/proc/thread-self/ns/net"}} {
		if got := start(t, call4("DEL", env), strings.NewReader(conf+socket+`"}`)); got != (outcome{}) {
			t.Errorf("%v: got %+v", env, got)
		}
	}
	override := map[string]string{"CNI_NETNS": "/proc/thread-self/ns/net", "CNI_NETNS_OVERRIDE": "TRUE"}
	if got := start(t, call4("CHECK", override), strings.NewReader(conf+socket+`"}`)); got != (outcome{}) {
		t.Errorf("got %+v", got)
	}
}

// TestVersion needs neither an agent nor anything on standard input.
func TestVersion(t *testing.T) {
	t.Parallel()
	for stdin, want := range map[string]string{
		"":                        "1.1.0",
		"nonsense":                "1.1.0",
		`{"cniVersion":7}`:        "1.1.0",
		`{"cniVersion":"0.1.0"}`:  "0.1.0",
		`{"cniVersion":"0.2.0"}`:  "0.2.0",
		`{"cniVersion":"0.4.0"}`:  "0.4.0",
		`{"cniVersion":"1.1.0"}`:  "1.1.0",
		`{"cniVersion":"19.0.0"}`: "19.0.0",
	} {
		got := start(t, map[string]string{"CNI_COMMAND": "VERSION"}, strings.NewReader(stdin))
		said := `{"cniVersion":"` + want + `","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}` + "\n"
		if d := cmp.Diff(outcome{0, said}, got); d != "" {
			t.Errorf("%q: (-want +got)\n%s", stdin, d)
		}
	}
}

// FuzzConfig: an error of the specification, or a configuration that may be sent.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(conf + `/none"}`))
	f.Add([]byte(`{"cniVersion":"0.3.1","name":"-","socket":"x","timeoutSeconds":1e9}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseConfig(data)
		var e *cnicall.Error
		if err != nil {
			if !errors.As(err, &e) || e.Code != cnicall.CodeDecode && e.Code != cnicall.CodeConfig {
				t.Errorf("got %v", err)
			}
			return
		}
		v, err := verbOf(cnicall.Status)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) || !validName(c.Name) || !filepath.IsAbs(c.Socket) || c.timeout(v) <= 0 && c.TimeoutSeconds > 1e-6 {
			t.Errorf("got %+v", c)
		}
	})
}

// TestNothingCanBePrinted leaves an exit status all the same.
func TestNothingCanBePrinted(t *testing.T) {
	t.Parallel()
	closed, err := os.Open(os.DevNull) // not for writing
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	var stderr bytes.Buffer
	p := process{name: "x", getenv: func(key string) string { return map[string]string{"CNI_COMMAND": "VERSION"}[key] }, stdin: strings.NewReader(""), stdout: closed, stderr: &stderr}
	if code := p.run(); code != 1 || !strings.Contains(stderr.String(), "cannot be printed") {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}
