// Package grafana is the part of Grafana's dashboard JSON that ours are made
// of. It knows neither metrics nor queries.
//
// The fields are those that Grafana 10 and 11 read (schema version 39); what is
// left out takes Grafana's default.
package grafana

import (
	"bytes"
	"encoding/json"
)

// SchemaVersion is what Grafana 10.4 and 11 write.
const SchemaVersion = 39

// Dashboard is one file.
type Dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: one crosshair for all panels
	Refresh       string      `json:"refresh"`
	Timezone      string      `json:"timezone"`
	Time          TimeRange   `json:"time"`
	Templating    Templating  `json:"templating"`
	Annotations   Annotations `json:"annotations"`
	Links         []Link      `json:"links"`
	Panels        []Panel     `json:"panels"`
}

// TimeRange is what a dashboard shows at first, "now-1h" to "now".
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Templating holds the variables.
type Templating struct {
	List []Variable `json:"list"`
}

// Annotations are marks over all panels.
type Annotations struct {
	List []Annotation `json:"list"`
}

// Annotation marks the times at which a query has a value.
type Annotation struct {
	Name        string     `json:"name"`
	Datasource  Datasource `json:"datasource"`
	Enable      bool       `json:"enable"`
	IconColor   string     `json:"iconColor"`
	Expr        string     `json:"expr"`
	TitleFormat string     `json:"titleFormat"`
	TextFormat  string     `json:"textFormat"`
}

// Link leads to the dashboards that carry a tag.
type Link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

// JSON is the file of the dashboard. The same dashboard gives the same bytes.
func (d *Dashboard) JSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // queries are full of < and >
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return b.Bytes(), err
}
