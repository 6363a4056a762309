// Command capture makes an archive of a node: of what sysfs, netlink and a few
// settings say of RDMA on it, as one text file that a bug report can carry and
// a test can read.
//
//	go run ./hack/capture > node.txtar
//
// It runs on the node itself and changes nothing there. As root it sees all;
// otherwise the archive says what it could not read. Where there is no Go,
// build it elsewhere (CGO_ENABLED=0 go build ./hack/capture) and copy it over.
//
//	-o FILE            write to a file
//	--root DIR         look at a copy of a node: a directory that holds its
//	                   sys, proc, etc and dev
//	--keep-addresses   keep addresses as they are
//
// # What is in it
//
// The archive holds what "railhead devices" and "railhead check" read, and
// nothing else: the list is in list_table.go. Of configuration files and the
// kernel's command line only known settings of RDMA are written down; serial
// numbers, the names of hosts, and the free text of aliases are not. MACs,
// GUIDs and IP addresses are replaced by others, one to one, such that what was
// equal or in one subnet still is; makers of cards can still be told, and
// private addresses stay private. That hides a site from whoever knows none of
// its addresses; one that is known gives others of its kind away. Names of
// netdevs and RDMA devices, PCI addresses and the paths of network namespaces
// are kept, but for addresses in names (enx0c42a1651234). Look through it before
// you send it: it is text.
//
// # What to do with it
//
// Look at the node from anywhere:
//
//	railhead devices --sysfs-root node.txtar
//	railhead check --sysfs-root node.txtar
//
// They print what they print on the node. To make a test of it, say in its
// comment what is wrong with the node, put it into
// internal/inventory/testdata/machines under a name that tells it apart, and
// let "go test -update" in cmd/railhead and internal/inventory write what is
// seen of it; then correct that to what should be seen.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "capture: %v\n", err)
		os.Exit(1)
	}
}

// run executes one command line.
func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("capture", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints errors
	file := flags.String("o", "", "write to this `file` instead of standard output")
	root := flags.String("root", "/", "look at a copy of a node in this `directory`")
	keep := flags.Bool("keep-addresses", false, "keep MACs, GUIDs and IP addresses as they are")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stderr)
			flags.Usage()
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q, want flags only", flags.Arg(0))
	}
	if _, err := os.Stat(filepath.Join(*root, "sys")); err != nil {
		return fmt.Errorf("--root: no copy of a node: %w", err)
	}
	addresses, err := newPseudonyms(rand.Reader)
	if err != nil {
		return err
	}
	if *keep {
		addresses = nil
	}
	text, left, err := capture(filepath.Clean(*root), addresses)
	if err != nil {
		return err
	}
	for _, line := range left {
		fmt.Fprintf(stderr, "capture: %s\n", line)
	}
	if *file != "" {
		return os.WriteFile(*file, text, 0o600)
	}
	_, err = stdout.Write(text)
	return err
}
