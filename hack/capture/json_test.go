package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLayOutJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   string
		want string
	}{
		{"nothing", `{}`, "{}\n"},
		{"null", `null`, "null\n"},
		{"object", `{"a":1,"b":"x, y: <z>","c":[1,2],"d":[],"e":{},"f":null}`, "{\n  \"a\": 1,\n  \"b\": \"x, y: <z>\",\n  \"c\": [1, 2],\n  \"d\": [],\n  \"e\": {},\n  \"f\": null\n}\n"},
		{"list", `{"a":[{"b":1,"c":{"d":2}},{"b":3}]}`, "{\n  \"a\": [\n    {\"b\": 1, \"c\": {\"d\": 2}},\n    {\"b\": 3}\n  ]\n}\n"},
		{"list in a list", `[{"a":1,"b":[{"c":2}]}]`, "[\n  {\"a\": 1, \"b\": [\n    {\"c\": 2}\n  ]}\n]\n"},
		{"two lists in a list", `[{"a":[{}],"b":[{}]}]`, "[\n  {\n    \"a\": [\n      {}\n    ],\n    \"b\": [\n      {}\n    ]\n  }\n]\n"},
		{"objects", `{"a":{"1":{"b":2},"3":{}}}`, "{\n  \"a\": {\n    \"1\": {\"b\": 2},\n    \"3\": {}\n  }\n}\n"},
		{"numbers", `{"a":18446744073709551615,"b":0.5}`, "{\n  \"a\": 18446744073709551615,\n  \"b\": 0.5\n}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := layOutJSON(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
}
