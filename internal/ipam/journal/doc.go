// Package journal keeps records in a file so that what was said to be on disk
// is there after a crash: appended, checksummed, synced in groups, compacted
// by replacing the file.
//
// It knows nothing of what the records mean and starts no goroutines.
package journal
