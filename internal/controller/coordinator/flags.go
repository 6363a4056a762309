package coordinator

import (
	"encoding/json"
	"fmt"
	"strings"
)

// flagValues are the values of a flag in a command line: "--flag=value",
// "--flag value" and with one dash, several times too, each a list with commas.
// Of a shell's command line in one argument the words are looked at.
func flagValues(args []string, flag string) []string {
	var words []string
	unquote := strings.NewReplacer(`"`, "", "'", "", `\`, "")
	for _, arg := range args {
		if strings.ContainsAny(arg, " \t\n") {
			words = append(words, strings.Fields(unquote.Replace(arg))...)
			continue
		}
		words = append(words, arg)
	}
	var values []string
	for i, word := range words {
		name, ok := strings.CutPrefix(word, "-")
		if !ok {
			continue
		}
		name, value, isJoined := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if name != flag {
			continue
		}
		if !isJoined && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			value = words[i+1]
		}
		values = append(values, splitList(value)...)
	}
	return values
}

// parseNodeArgs reads the annotation that k3s and RKE2 put on their nodes: a JSON
// list of the words behind the program's name.
func parseNodeArgs(annotation string) ([]string, error) {
	var args []string
	if err := json.Unmarshal([]byte(annotation), &args); err != nil {
		return nil, fmt.Errorf("want a JSON list of texts: %w", err)
	}
	return args, nil
}
