// Package arch holds no code but the test of the architecture: which package
// may import which, as docs/architecture.md says and explains.
package arch
