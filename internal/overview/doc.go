// Package overview shows what the objects of a cluster come to: pools with how
// full they are and who may use them, networks with what was made of them and
// which pods are on them, who has which addresses and what contradicts that, and
// why a pod has the addresses that it has. [Pools], [Networks], [Addresses] and
// [Explain] are pure; [Reader] reads what they need.
//
// It changes nothing and watches nothing. Lists of pods are of metadata only, and
// all lists in pages.
package overview
