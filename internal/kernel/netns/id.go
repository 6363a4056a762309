package netns

import "fmt"

// ID identifies a network namespace for as long as it lives: the device and
// inode of its nsfs file, which every path to it shares.
type ID struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// String returns the form in which the kernel's /proc links show the inode,
// net:[4026531840].
func (id ID) String() string { return fmt.Sprintf("net:[%d]", id.Ino) }
