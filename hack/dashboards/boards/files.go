package boards

import (
	"errors"

	"railhead/internal/counters"
)

// Files makes the JSON of all dashboards, by the names of their files. Families
// are those of the exporter.
func Files(families []*counters.Family) (map[string][]byte, error) {
	files := map[string][]byte{}
	var problems []error
	for _, board := range All() {
		dashboard, err := board.Dashboard(Help(families))
		problems = append(problems, err)
		text, err := dashboard.JSON()
		problems = append(problems, err)
		files[board.File+".json"] = text
	}
	return files, errors.Join(problems...)
}

// Help looks up what a family means, by its name or that of its pods' share.
func Help(families []*counters.Family) func(name string) (string, bool) {
	help := make(map[string]string, len(families))
	for _, f := range families {
		help[f.Name] = f.Help
	}
	return func(name string) (string, bool) {
		text, ok := help[name]
		return text, ok
	}
}
