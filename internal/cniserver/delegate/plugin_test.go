package delegate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain makes of the test binary a CNI plugin too, where it is called as one.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("CNI_COMMAND") != "":
		os.Exit(plugin())
	case os.Getenv(hangs) != "":
		fifo := os.NewFile(3, "fifo")
		_, err := fifo.WriteString("c")
		if err == nil {
			err = forever(fifo)
		}
		fmt.Fprintln(os.Stderr, "child of a test plugin:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// hangs, in its environment, has a child of the plugin never end.
const hangs = "DELEGATE_TEST_HANGS"

// script is what a plugin does, by its configuration.
type script struct {
	Record string `json:"record"` // file in its root that a line of JSON is added to, of what it was given
	Answer string `json:"answer"` // printed as it stands
	Repeat int    `json:"repeat"` // so often again
	Stderr string `json:"stderr"`
	Exit   int    `json:"exit"`
	Kill   bool   `json:"kill"`  // it kills itself
	Child  string `json:"child"` // it starts one that never ends, which keeps this FIFO, where both write that they run
	Leave  bool   `json:"leave"` // it ends before that child; otherwise it never does
}

// given is what a plugin finds.
type given struct {
	Env    []string        `json:"env"`
	Dir    string          `json:"dir"`
	Marker string          `json:"marker,omitempty"` // content of /marker
	Config json.RawMessage `json:"config"`
}

func plugin() int {
	stdin, err := io.ReadAll(os.Stdin)
	var s script
	if err == nil {
		err = json.Unmarshal(stdin, &s)
	}
	if err == nil && s.Record != "" {
		err = s.record(stdin)
	}
	if err == nil && s.Child != "" {
		err = s.child()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test plugin:", err)
		return 99
	}
	fmt.Fprint(os.Stdout, strings.Repeat(s.Answer, s.Repeat+1))
	fmt.Fprint(os.Stderr, s.Stderr)
	if s.Kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return s.Exit
}

func (s script) record(stdin []byte) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	marker, _ := os.ReadFile("/marker") // there is one in a root of tests only
	line, err := json.Marshal(given{Env: os.Environ(), Dir: dir, Marker: string(marker), Config: stdin})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.Record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	return f.Close()
}

// child starts one that has the plugin's output too.
func (s script) child() error {
	fifo, err := os.OpenFile(s.Child, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{hangs + "=1"}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{fifo}
	if err := cmd.Start(); err != nil {
		return err
	}
	if s.Leave {
		return nil
	}
	if _, err := fifo.WriteString("p"); err != nil {
		return err
	}
	return forever(fifo)
}

// forever waits until nobody reads a FIFO any more: until the test has ended.
func forever(fifo *os.File) error {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fifo.Fd())}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return errors.Join(err, errors.New("nobody reads any more"))
		}
	}
}

// node is a directory with plugins.
type node struct {
	*Delegate
	bin, record string
	fifo        string
}

// newNode has plugins by their names.
func newNode(t *testing.T, names ...string) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{bin: filepath.Join(dir, "bin"), record: filepath.Join(dir, "record"), fifo: filepath.Join(dir, "fifo")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(n.bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(n.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if n.Delegate, err = New(Config{BinDirs: []string{n.bin}}); err != nil {
		t.Fatal(err)
	}
	return n
}

// call is one with a configuration of a script and other values.
func (n *node) call(t *testing.T, s script, fields map[string]any) Call {
	t.Helper()
	s.Record = n.record
	config, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"cniVersion": "1.1.0", "name": "rails", "type": "vendor"}
	maps.Copy(values, fields)
	if config, err = with(config, values); err != nil {
		t.Fatal(err)
	}
	return Call{
		ContainerID: "c1", NetNS: "/run/netns/p1", IfName: "net1", Args: "K8S_POD_NAME=a;K8S_POD_NAMESPACE=b",
		Type: values["type"].(string), Config: config,
	}
}

// given is what plugins found, call by call.
func (n *node) given(t *testing.T) []given {
	t.Helper()
	f, err := os.Open(n.record)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []given
	for d := json.NewDecoder(f); d.More(); {
		var g given
		if err := d.Decode(&g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// fields are those of a configuration that are no script.
func (g given) fields(t *testing.T) map[string]any {
	t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal(g.Config, &fields); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"record", "answer", "repeat", "stderr", "exit", "kill", "child", "leave"} {
		delete(fields, key)
	}
	return fields
}

// command is CNI_COMMAND.
func (g given) command() string {
	for _, v := range g.Env {
		if value, ok := strings.CutPrefix(v, "CNI_COMMAND="); ok {
			return value
		}
	}
	return ""
}
