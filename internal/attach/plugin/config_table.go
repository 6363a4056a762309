package plugin

// commonKeys may stand in every plugin: CNI's own, and what a chain puts in.
var commonKeys = []string{
	"type", "name", "cniVersion", "capabilities", "runtimeConfig", "args", "prevResult", "ipam", "dns",
	"deviceID", "pciBusID", "log", "log_level", "log_file", "logLevel", "logFile", "logOptions",
}
