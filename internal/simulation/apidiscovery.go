package simulation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discover answers what groups, versions and resources there are; nil for a
// path that asks for something else. It has the old form alone, in which
// clients ask where they get no new one.
func (a *apiServer) discover(path string) any {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/version":
		return object{"major": "1", "minor": "34", "gitVersion": "v1.34.1", "platform": "linux/amd64"}
	case len(parts) == 1 && parts[0] == "api":
		return object{"kind": "APIVersions", "versions": []string{"v1"}}
	case len(parts) == 1 && parts[0] == "apis":
		return object{"kind": "APIGroupList", "apiVersion": "v1", "groups": a.groups()}
	case len(parts) == 2 && parts[0] == "api":
		return a.resources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return a.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil
}

func (a *apiServer) groups() []object {
	versions := map[string][]schema.GroupVersion{}
	var names []string
	for _, k := range a.kinds {
		if k.Group == "" || slices.Contains(versions[k.Group], k.GroupVersion()) {
			continue
		}
		if versions[k.Group] == nil {
			names = append(names, k.Group)
		}
		versions[k.Group] = append(versions[k.Group], k.GroupVersion())
	}
	slices.Sort(names)
	groups := []object{}
	for _, name := range names {
		var list []object
		for _, v := range versions[name] {
			list = append(list, object{"groupVersion": v.String(), "version": v.Version})
		}
		groups = append(groups, object{"name": name, "versions": list, "preferredVersion": list[0]})
	}
	return groups
}

// resources is nil for a group and version that there is not.
func (a *apiServer) resources(gv schema.GroupVersion) any {
	var list []object
	for _, k := range a.kinds {
		if k.GroupVersion() == gv {
			list = append(list, object{
				"name": k.Resource, "singularName": strings.ToLower(k.Kind), "kind": k.Kind, "namespaced": k.Namespaced,
				"verbs": []string{"get", "list", "watch"},
			})
		}
	}
	if list == nil {
		return nil
	}
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv.String(), "resources": list}
}
