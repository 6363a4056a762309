package driver

// cniPlugins are copied to nodes, where others may add theirs, with a tool that
// calls them by hand.
var cniPlugins = [...]string{"bridge", "host-local", "loopback", "portmap", "macvlan", "cnitool"}
