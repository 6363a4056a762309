package exporter

import (
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		filter Filter
		name   string
		want   bool
	}{
		{Filter{}, "mlx5_0", true},
		{Filter{Include: "mlx5_0"}, "mlx5_0", true},
		{Filter{Include: "mlx5_0"}, "mlx5_01", false},
		{Filter{Include: "mlx5"}, "mlx5_0", false},
		{Filter{Include: "a|mlx5_.*"}, "mlx5_0", true},
		{Filter{Include: "mlx5_.*|a"}, "xmlx5_0", false},
		{Filter{Exclude: "mlx5_0"}, "mlx5_0", false},
		{Filter{Exclude: "mlx5_0"}, "mlx5_1", true},
		{Filter{Include: "mlx5_.*", Exclude: ".*_0"}, "mlx5_0", false},
		{Filter{Include: "mlx5_.*", Exclude: ".*_0"}, "mlx5_1", true},
	}
	for _, tt := range tests {
		f, err := tt.filter.compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := f.matches(tt.name); got != tt.want {
			t.Errorf("%+v matches %q: %v", tt.filter, tt.name, got)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	t.Parallel()
	for field, f := range map[string]Filter{"include": {Include: "(a"}, "exclude": {Exclude: "a)"}} {
		_, err := f.compile()
		if err == nil || !strings.Contains(err.Error(), field) || strings.Contains(err.Error(), "?:") {
			t.Errorf("%+v: error %v, which should name %s and show what was written", f, err, field)
		}
	}
}
