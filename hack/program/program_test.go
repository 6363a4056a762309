package program

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The test binary is the program that the tests run: it says its arguments, one a line, and fails if there are many.
func TestMain(m *testing.M) {
	if os.Getenv("PROGRAM_TEST") == "" {
		os.Exit(m.Run())
	}
	os.Stdout.WriteString(strings.Join(os.Args[1:], "\n") + "\n")
	if len(os.Args) > 3 {
		os.Exit(3)
	}
}

func TestOutput(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROGRAM_TEST", "1")
	out, err := Output(Command(t.Context(), self, "one", "two"))
	if err != nil || string(out) != "one\ntwo\n" {
		t.Errorf("%q, %v", out, err)
	}
	err = Run(Command(t.Context(), self, strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z")...))
	if err == nil || !strings.Contains(err.Error(), "exit status 3\ng\n") || !strings.HasSuffix(err.Error(), "y\nz") {
		t.Errorf("error %q", err)
	}
}

func TestLastLines(t *testing.T) {
	t.Parallel()
	got := []string{LastLines("a\nb\nc\n\n", 2), LastLines("a", 2), LastLines("", 2)}
	if diff := cmp.Diff([]string{"b\nc", "a", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
