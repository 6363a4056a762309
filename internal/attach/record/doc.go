// Package record keeps on disk what the agent attached to which pod, with which
// undo, so that another run of the agent answers again, checks and takes away
// without the API server.
//
// A record is a line of a journal: its version and container ID around what this
// release knows. Lines of later releases are kept as they are.
package record
