package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"railhead/internal/cnicall"
	"railhead/internal/versus"
)

const answered = `{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/run/netns/none"}],"ips":[{"address":"10.1.0.5/16","interface":0}],"dns":{}}`

// addCommand is a call of the program at a path.
func addCommand(ctx context.Context, path, socket string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_NETNS=/run/netns/none", "CNI_IFNAME=net1", "CNI_PATH=/opt/cni/bin"}
	cmd.Stdin = strings.NewReader(conf + socket + `"}`)
	return cmd
}

// BenchmarkCall starts the program for an ADD that an agent answers at once. The
// floor is a Go program that says hello.
func BenchmarkCall(b *testing.B) {
	dir := plugins(b)
	socket := agent(b, func(context.Context, cnicall.Request) cnicall.Answer {
		return cnicall.Answer{Output: json.RawMessage(answered)}
	})
	source, hello := filepath.Join(b.TempDir(), "hello.go"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := goBuild(hello, source); err != nil {
		without(b, err)
	}
	run := func(path, want string) func() error {
		return func() error {
			out, err := addCommand(b.Context(), path, socket).Output()
			if err != nil || string(out) != want+"\n" {
				return fmt.Errorf("%s: %w: %s", path, err, out)
			}
			return nil
		}
	}
	versus.Floor(b, run(filepath.Join(dir, "railhead-cni"), answered), run(hello, "hello"))
}

// TestMemory looks at the program while its call is being answered. (What the
// kernel says of a child that has ended includes the parent it was made of.)
func TestMemory(t *testing.T) {
	t.Parallel()
	pids, status := make(chan int, 1), make(chan []byte, 1)
	socket := agent(t, func(context.Context, cnicall.Request) cnicall.Answer {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(<-pids), "status"))
		if err != nil {
			t.Error(err)
		}
		status <- data
		return cnicall.Answer{Output: json.RawMessage(answered)}
	})
	cmd := addCommand(t.Context(), filepath.Join(plugins(t), "railhead-cni"), socket)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids <- cmd.Process.Pid
	said := <-status
	if err := cmd.Wait(); err != nil || out.String() != answered+"\n" {
		t.Fatalf("%v: %s", err, &out)
	}
	t.Logf("%s", regexp.MustCompile(`(?m)^(VmHWM|Rss.*):.*$`).FindAll(said, -1))
	most := regexp.MustCompile(`(?m)^VmHWM:\s*(\d+) kB$`).FindSubmatch(said)
	if most == nil {
		t.Fatalf("no VmHWM in %s", said)
	}
	if kilobytes, err := strconv.Atoi(string(most[1])); err != nil || kilobytes > 5<<10 {
		t.Errorf("%d kB, %v, want at most 5 MiB", kilobytes, err)
	}
}
