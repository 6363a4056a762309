package grafana

// Panel is a row header or what shows data.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	Datasource      *Datasource      `json:"datasource,omitempty"`
	GridPos         GridPos          `json:"gridPos"`
	Targets         []Target         `json:"targets,omitempty"`
	FieldConfig     *FieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Transformations []Transformation `json:"transformations,omitempty"`
	Collapsed       *bool            `json:"collapsed,omitempty"` // of a row
	Panels          *[]Panel         `json:"panels,omitempty"`    // of a row
}

// GridPos is a place in a grid 24 wide, a unit of height being 30 pixels.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is a query of a panel.
type Target struct {
	RefID        string     `json:"refId"`
	Datasource   Datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
	EditorMode   string     `json:"editorMode"`
	Format       string     `json:"format"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
}

// FieldConfig says how values look.
type FieldConfig struct {
	Defaults  Field      `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Field is how a value looks.
type Field struct {
	Unit       string         `json:"unit"`
	Decimals   *int           `json:"decimals,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	NoValue    string         `json:"noValue,omitempty"`
	Color      *Color         `json:"color,omitempty"`
	Thresholds *Thresholds    `json:"thresholds,omitempty"`
	Mappings   []Mapping      `json:"mappings,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// Color is how a colour is chosen.
type Color struct {
	Mode string `json:"mode"`
}

// Thresholds are values from which on another colour counts.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []Step `json:"steps"`
}

// Step is a colour and the value it begins with, nil for the first.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Mapping shows values as texts.
type Mapping struct {
	Type    string            `json:"type"`
	Options map[string]Result `json:"options"`
}

// Result is the text and colour of a value.
type Result struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
	Color string `json:"color,omitempty"`
}

// Override changes how some fields look.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher chooses fields.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is one thing that an Override changes.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// Transformation changes a table between the query and its picture.
type Transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
