package main

import (
	"cmp"
	"runtime/debug"
)

// versionLine says which version this is, and by which Go it was built.
func versionLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return "railhead-controller " + cmp.Or(info.Main.Version, "(devel)") + " " + info.GoVersion
}
