// Package policy says what API objects mean: it reviews what users wrote, with
// every rule and in words that help, and turns it into plain values. Admission,
// reconcilers, agents and the command line ask the same Catalog, so that they
// cannot disagree. It reads and writes no API, no file and no kernel.
//
// Addresses are ranges and never lists: a /64 costs what a /30 costs.
//
// Source: reference rules of Spiderpool 1.2, spec/002 and spec/003.
package policy
