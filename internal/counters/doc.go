// Package counters knows how RDMA devices are doing: one row of its table for
// every counter that a kernel has of them says where it is read, what it is
// called, its type and width, and what it really means.
//
// [Families] is all that can be exported. A [Reader] reads one device and
// returns samples; [Facts] returns what an inventory tells without reading. The
// package only reads, keeps no history but what it takes to continue counters
// that wrap, starts no goroutines, and knows nothing of pods or of the format
// in which samples are served.
//
// What a driver does not have has no sample: absent is not zero.
package counters
