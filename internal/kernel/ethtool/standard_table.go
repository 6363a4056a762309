package ethtool

import "strconv"

// standardGroups has the names that the kernel has for groups of standard
// statistics and for what is in them, each under its number: stats_std_names
// and its like of net/ethtool/stats.c.
var standardGroups = []struct {
	name  string
	stats []string
}{
	{"eth-phy", []string{"SymbolErrorDuringCarrier"}},
	{"eth-mac", []string{
		"FramesTransmittedOK", "SingleCollisionFrames", "MultipleCollisionFrames", "FramesReceivedOK",
		"FrameCheckSequenceErrors", "AlignmentErrors", "OctetsTransmittedOK", "FramesWithDeferredXmissions",
		"LateCollisions", "FramesAbortedDueToXSColls", "FramesLostDueToIntMACXmitError", "CarrierSenseErrors",
		"OctetsReceivedOK", "FramesLostDueToIntMACRcvError", "MulticastFramesXmittedOK", "BroadcastFramesXmittedOK",
		"FramesWithExcessiveDeferral", "MulticastFramesReceivedOK", "BroadcastFramesReceivedOK", "InRangeLengthErrors",
		"OutOfRangeLengthField", "FrameTooLongErrors",
	}},
	{"eth-ctrl", []string{"MACControlFramesTransmitted", "MACControlFramesReceived", "UnsupportedOpcodesReceived"}},
	{"rmon", []string{"etherStatsUndersizePkts", "etherStatsOversizePkts", "etherStatsFragments", "etherStatsJabbers"}},
}

// groupNames returns the name of a group, and the names of what is in it.
func groupNames(id uint32) (name string, stats []string) {
	if id < uint32(len(standardGroups)) {
		return standardGroups[id].name, standardGroups[id].stats
	}
	return strconv.FormatUint(uint64(id), 10), nil
}

func statName(names []string, number uint16) string {
	if int(number) < len(names) {
		return names[number]
	}
	return strconv.Itoa(int(number))
}

// StandardStatNumber returns the numbers by which the kernel knows a standard
// statistic, for those who play the kernel.
func StandardStatNumber(group, name string) (id uint32, number uint16, ok bool) {
	for g := range standardGroups {
		for s := range standardGroups[g].stats {
			if standardGroups[g].name == group && standardGroups[g].stats[s] == name {
				return uint32(g), uint16(s), true
			}
		}
	}
	return 0, 0, false
}
