package dashboards

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/dashboards/boards"
	"railhead/hack/dashboards/grafana"
	"railhead/hack/dashboards/promql"
	"railhead/internal/counters"
)

// builtin are the variables that Grafana itself gives a value.
func builtin() map[string]string {
	return map[string]string{"__rate_interval": "1m", "__range": "1h", "__interval": "15s"}
}

// TestGenerated compares the chart's dashboards with what their definitions
// make.
func TestGenerated(t *testing.T) {
	t.Parallel()
	files, err := boards.Files(counters.Families())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dashboardsDir, name))
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date: run go generate ./hack/dashboards (-want +got):\n%s", name, diff)
		}
	}
	entries, err := os.ReadDir(dashboardsDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if files[entry.Name()] == nil {
			t.Errorf("%s has no definition", entry.Name())
		}
	}
}

// read returns the chart's dashboards, as Grafana would see them.
func read(t *testing.T) map[string]grafana.Dashboard {
	t.Helper()
	all := map[string]grafana.Dashboard{}
	for _, board := range boards.All() {
		text, err := os.ReadFile(filepath.Join(dashboardsDir, board.File+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var d grafana.Dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", board.File, err)
		}
		all[board.File] = d
	}
	return all
}

// TestPanels wants of each panel what a reader needs, and a place of its own.
func TestPanels(t *testing.T) {
	t.Parallel()
	uids := map[string]bool{}
	for file, d := range read(t) {
		if uids[d.UID] || d.UID == "" || len(d.UID) > 40 {
			t.Errorf("%s: UID %q is not unique, or none that Grafana takes", file, d.UID)
		}
		uids[d.UID] = true
		ids, titles, cells := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: panel %q has id %d, which is not unique", file, p.Title, p.ID)
			}
			ids[p.ID] = true
			occupy(t, file, p, cells)
			if p.Type == "row" {
				continue
			}
			if titles[p.Title] {
				t.Errorf("%s: there are two panels %q", file, p.Title)
			}
			titles[p.Title] = true
			checkPanel(t, file, p)
		}
	}
}

func occupy(t *testing.T, file string, p grafana.Panel, cells map[[2]int]string) {
	t.Helper()
	at := p.GridPos
	if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
		t.Errorf("%s: panel %q is outside of the page: %+v", file, p.Title, at)
	}
	for x := at.X; x < at.X+at.W; x++ {
		for y := at.Y; y < at.Y+at.H; y++ {
			if other := cells[[2]int{x, y}]; other != "" {
				t.Errorf("%s: panels %q and %q lie on each other", file, p.Title, other)
				return
			}
			cells[[2]int{x, y}] = p.Title
		}
	}
}

func checkPanel(t *testing.T, file string, p grafana.Panel) {
	t.Helper()
	if p.Description == "" {
		t.Errorf("%s: panel %q has no description", file, p.Title)
	}
	if len(p.Targets) == 0 {
		t.Errorf("%s: panel %q asks nothing", file, p.Title)
	}
	if p.FieldConfig == nil || p.FieldConfig.Defaults.Unit == "" && p.Type != "table" {
		t.Errorf("%s: panel %q has no unit", file, p.Title)
	}
	if p.Datasource == nil || p.Datasource.UID != "${datasource}" {
		t.Errorf("%s: panel %q asks %+v, want the data source that the reader chose", file, p.Title, p.Datasource)
	}
}

// TestQueries parses all queries, with every variable in its place, against the
// families of the exporter; a legend may use only labels that come out.
func TestQueries(t *testing.T) {
	t.Parallel()
	s := schema(t)
	label := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for file, d := range read(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				labels := labelsOf(t, s, d, p, target.Expr)
				for _, found := range label.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !slices.Contains(labels, found[1]) {
						t.Errorf("%s: the legend %q of panel %q uses %q, there is %q", file, target.LegendFormat, p.Title, found[1], labels)
					}
				}
			}
		}
	}
}

// labelsOf checks a query of a panel and returns the labels of its result.
func labelsOf(t *testing.T, s *promql.Schema, d grafana.Dashboard, p grafana.Panel, query string) []string {
	t.Helper()
	values := builtin()
	for _, v := range d.Templating.List {
		values[v.Name] = ".*"
	}
	expanded, unknown := promql.Expand(query, values)
	if len(unknown) > 0 {
		t.Errorf("%s: panel %q uses variables %q, which the dashboard does not have", d.Title, p.Title, unknown)
	}
	labels, err := s.Labels(expanded)
	if err != nil {
		t.Errorf("%s: panel %q: %s: %v", d.Title, p.Title, expanded, err)
	}
	return labels
}

// TestTables wants the labels of a table's columns in its queries.
func TestTables(t *testing.T) {
	t.Parallel()
	s := schema(t)
	dashboards := read(t)
	for _, board := range boards.All() {
		for _, row := range board.Rows {
			for _, p := range row.Panels {
				wanted := []string{}
				for _, c := range p.Columns {
					if c.Label != "" {
						wanted = append(wanted, c.Label)
					}
				}
				if p.Kind == boards.Matrix {
					wanted = append(wanted, p.Down, p.Across)
				}
				var have []string
				for _, q := range p.Queries {
					have = append(have, labelsOf(t, s, dashboards[board.File], grafana.Panel{Title: p.Title}, q.Expr)...)
				}
				for _, name := range wanted {
					if !slices.Contains(have, name) {
						t.Errorf("%s: panel %q has a column of label %q, its queries give %q", board.Title, p.Title, name, have)
					}
				}
			}
		}
	}
}

// TestVariables wants every variable of a dashboard to be used, by its panels
// or by other variables, and its own query to be sound.
func TestVariables(t *testing.T) {
	t.Parallel()
	s := schema(t)
	query := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for file, d := range read(t) {
		var all strings.Builder
		for _, v := range d.Templating.List {
			all.WriteString(v.Definition)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all.WriteString(target.Expr + target.Datasource.UID)
			}
		}
		for _, v := range d.Templating.List {
			if ok, _ := regexp.MatchString(`\$\{?`+v.Name+`\b`, all.String()); !ok {
				t.Errorf("%s: nothing uses variable %q", file, v.Name)
			}
			if v.Type == "datasource" {
				continue
			}
			found := query.FindStringSubmatch(v.Definition)
			if found == nil {
				t.Errorf("%s: variable %q asks %q", file, v.Name, v.Definition)
				continue
			}
			if labels := labelsOf(t, s, d, grafana.Panel{Title: "$" + v.Name}, found[1]); !slices.Contains(labels, found[2]) {
				t.Errorf("%s: variable %q asks for label %q, there is %q", file, v.Name, found[2], labels)
			}
		}
	}
}
