package grafana

// Datasource names where a query goes.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Prometheus is the data source that the variable "datasource" names.
func Prometheus() Datasource {
	return Datasource{Type: "prometheus", UID: "${datasource}"}
}

// Variable is a choice at the top of a dashboard.
type Variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Datasource *Datasource `json:"datasource,omitempty"`
	Query      any         `json:"query"`
	Definition string      `json:"definition,omitempty"`
	Regex      string      `json:"regex"`
	Refresh    int         `json:"refresh"`
	Sort       int         `json:"sort"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	AllValue   string      `json:"allValue,omitempty"`
	Hide       int         `json:"hide"`
	Current    *Current    `json:"current,omitempty"`
	Options    []Current   `json:"options"`
}

// Current is a value of a variable.
type Current struct {
	Selected bool `json:"selected"`
	Text     any  `json:"text"`
	Value    any  `json:"value"`
}

type variableQuery struct {
	Query string `json:"query"`
	RefID string `json:"refId"`
}

// Values of the fields of a Variable.
const (
	onTimeRange = 2 // refreshed when the time range changes
	byName      = 7 // sorted as people sort names with numbers
)

// DatasourceVariable lets the reader choose among the Prometheus data sources.
func DatasourceVariable() Variable {
	return Variable{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1, Options: []Current{}}
}

// LabelVariable lets the reader choose values of a label of the series that
// match; any number of them and at first all, which also matches series without
// that label.
func LabelVariable(name, title, selector, label string) Variable {
	source := Prometheus()
	query := "label_values(" + selector + ", " + label + ")"
	return Variable{
		Name: name, Label: title, Type: "query", Datasource: &source,
		Query: variableQuery{Query: query, RefID: name}, Definition: query,
		Refresh: onTimeRange, Sort: byName, Multi: true, IncludeAll: true, AllValue: ".*",
		Current: &Current{Selected: true, Text: []string{"All"}, Value: []string{"$__all"}},
		Options: []Current{},
	}
}
