// Package subnet keeps what a SpiderSubnet says of its pools, and gives
// applications pools of their own out of it: as many addresses as they have
// pods, growing and shrinking with them.
//
// What is to be done is planned by package policy; here it is read and written.
// It never gives a pod an address, and takes none from a pod that has it.
package subnet
