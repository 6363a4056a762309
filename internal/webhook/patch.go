package webhook

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	kjson "sigs.k8s.io/json"
)

// patch returns the operations that make the same change to an object as it was
// sent that was made to it as our types know it, before and after. What they do not
// know, such as a pod's fields of a newer Kubernetes, is not touched.
func patch(sent, before, after []byte) ([]jsonpatch.Operation, error) {
	var documents [3]any
	for i, data := range [][]byte{sent, before, after} {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &documents[i]); err != nil {
			return nil, err
		}
	}
	return change(nil, "", documents[0], documents[1], documents[2]), nil
}

// change appends what makes sent differ at path as after differs from before.
func change(ops []jsonpatch.Operation, path string, sent, before, after any) []jsonpatch.Operation {
	if reflect.DeepEqual(before, after) {
		return ops
	}
	sentMap, ok0 := sent.(map[string]any)
	beforeMap, ok1 := before.(map[string]any)
	afterMap, ok2 := after.(map[string]any)
	if ok0 && ok1 && ok2 {
		return changeMap(ops, path, sentMap, beforeMap, afterMap)
	}
	sentList, ok0 := sent.([]any)
	beforeList, ok1 := before.([]any)
	afterList, ok2 := after.([]any)
	if ok0 && ok1 && ok2 && len(sentList) == len(beforeList) && len(beforeList) == len(afterList) {
		for i := range afterList {
			ops = change(ops, path+"/"+strconv.Itoa(i), sentList[i], beforeList[i], afterList[i])
		}
		return ops
	}
	return append(ops, jsonpatch.NewOperation("replace", path, after))
}

func changeMap(ops []jsonpatch.Operation, path string, sent, before, after map[string]any) []jsonpatch.Operation {
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if old, known := before[key]; known && reflect.DeepEqual(old, after[key]) {
			continue
		}
		at := path + "/" + escape(key)
		if there, ok := sent[key]; ok {
			ops = change(ops, at, there, before[key], after[key])
		} else {
			ops = append(ops, jsonpatch.NewOperation("add", at, after[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		_, stays := after[key]
		if _, there := sent[key]; there && !stays {
			ops = append(ops, jsonpatch.NewOperation("remove", path+"/"+escape(key), nil))
		}
	}
	return ops
}

// escape writes a key as a JSON pointer has it.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
