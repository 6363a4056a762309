package boards

import "railhead/hack/dashboards/grafana"

// field is how the values of a panel look.
func (p *Panel) field(color string) *grafana.FieldConfig {
	field := grafana.Field{Unit: p.Unit, Color: &grafana.Color{Mode: color}}
	if len(p.Steps) > 0 {
		field.Thresholds = &grafana.Thresholds{Mode: "absolute", Steps: p.Steps}
	}
	return &grafana.FieldConfig{Defaults: field, Overrides: []grafana.Override{}}
}

func (p *Panel) drawLines(drawn *grafana.Panel) {
	stacking := "none"
	if p.Stacked {
		stacking = "normal"
	}
	drawn.FieldConfig = p.field("palette-classic")
	drawn.FieldConfig.Defaults.Min = new(float64)
	drawn.FieldConfig.Defaults.Custom = map[string]any{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false,
		"stacking": map[string]any{"mode": stacking, "group": "A"},
	}
	drawn.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
}

func (p *Panel) drawStat(drawn *grafana.Panel) {
	drawn.FieldConfig = p.field("thresholds")
	if len(p.Steps) == 0 {
		drawn.FieldConfig.Defaults.Thresholds = &grafana.Thresholds{Mode: "absolute", Steps: steps("blue")}
	}
	drawn.Options = map[string]any{
		"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "textMode": "auto", "orientation": "auto",
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
	}
}

func (p *Panel) drawHistory(drawn *grafana.Panel) {
	drawn.FieldConfig = p.field("thresholds")
	drawn.FieldConfig.Defaults.Custom = map[string]any{"fillOpacity": 90, "lineWidth": 0}
	drawn.Options = map[string]any{
		"showValue": "never", "rowHeight": 0.9, "colWidth": 1.0,
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
		"tooltip": map[string]any{"mode": "single", "sort": "none"},
	}
}

func (p *Panel) drawTable(drawn *grafana.Panel) {
	drawn.FieldConfig = p.field("thresholds")
	drawn.FieldConfig.Defaults.Custom = map[string]any{"align": "auto", "filterable": true}
	drawn.Options = map[string]any{"showHeader": true, "cellHeight": "sm"}
	var names []string
	order, titles := map[string]int{}, map[string]string{}
	for i, c := range p.Columns {
		name := p.fieldName(c)
		names = append(names, name)
		order[name], titles[name] = i, c.Title
		drawn.FieldConfig.Overrides = append(drawn.FieldConfig.Overrides, c.override()...)
	}
	drawn.Transformations = []grafana.Transformation{
		{ID: "merge", Options: map[string]any{}},
		{ID: "filterFieldsByName", Options: map[string]any{"include": map[string]any{"names": names}}},
		{ID: "organize", Options: map[string]any{"indexByName": order, "renameByName": titles, "excludeByName": map[string]any{}}},
	}
}

// fieldName is how Grafana calls the field of a column before it is renamed.
func (p *Panel) fieldName(c Column) string {
	switch {
	case c.Value == "":
		return c.Label
	case len(p.Queries) == 1:
		return "Value"
	default:
		return "Value #" + c.Value
	}
}

// override gives a column its unit and texts.
func (c Column) override() []grafana.Override {
	var properties []grafana.Property
	if c.Unit != "" {
		properties = append(properties, grafana.Property{ID: "unit", Value: c.Unit})
	}
	if len(c.Texts) > 0 {
		properties = append(properties,
			grafana.Property{ID: "mappings", Value: c.Texts},
			grafana.Property{ID: "custom.cellOptions", Value: map[string]any{"type": "color-text"}})
	}
	if len(properties) == 0 {
		return nil
	}
	return []grafana.Override{{Matcher: grafana.Matcher{ID: "byName", Options: c.Title}, Properties: properties}}
}

func (p *Panel) drawMatrix(drawn *grafana.Panel) {
	drawn.Type = string(Table)
	drawn.FieldConfig = p.field("thresholds")
	drawn.FieldConfig.Defaults.Custom = map[string]any{"align": "center", "cellOptions": map[string]any{"type": "color-background", "mode": "basic"}}
	drawn.FieldConfig.Overrides = []grafana.Override{{
		Matcher:    grafana.Matcher{ID: "byName", Options: p.Down + `\` + p.Across},
		Properties: []grafana.Property{{ID: "custom.cellOptions", Value: map[string]any{"type": "auto"}}, {ID: "displayName", Value: "Node"}},
	}}
	drawn.Options = map[string]any{"showHeader": true, "cellHeight": "sm"}
	drawn.Transformations = []grafana.Transformation{
		{ID: "sortBy", Options: map[string]any{"sort": []map[string]any{{"field": p.Across}}}},
		{ID: "groupingToMatrix", Options: map[string]any{"rowField": p.Down, "columnField": p.Across, "valueField": "Value"}},
	}
}
