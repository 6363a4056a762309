// Command failures reads what go test printed, of many packages and with -v or
// without, and prints what failed: each such test with what it said itself, and
// what ended a package without a test. It is for the end of a long run, of which
// one sees the last lines first.
//
//	go run ./hack/failures < log
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	log, err := io.ReadAll(os.Stdin)
	if err == nil {
		_, err = io.WriteString(os.Stdout, render(parse(string(log))))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failures:", err)
		os.Exit(1)
	}
}
