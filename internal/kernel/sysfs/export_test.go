package sysfs

// The tests are outside the package, as they use kerneltest, which uses the
// package. These are the parsers that they reach.
var (
	AfterNumber       = afterNumber
	BeforeNumber      = beforeNumber
	Below             = below
	CharClass         = charClass
	CompareNatural    = compareNatural
	ComparePCI        = comparePCI
	IsSubfunction     = isSubfunction
	IsZeroGID         = isZeroGID
	LogicalLines      = logicalLines
	ParseCarrier      = parseCarrier
	ParseClass        = parseClass
	ParseDecimal      = parseDecimal
	ParseIndex        = parseIndex
	ParseInt          = parseInt
	ParseLID          = parseLID
	ParseLinkSpeed    = parseLinkSpeed
	ParseLinkWidth    = parseLinkWidth
	ParseMemlock      = parseMemlock
	ParseModprobe     = parseModprobe
	ParsePCIID        = parsePCIID
	ParseParams       = parseParams
	ParseRate         = parseRate
	ParseSpeed        = parseSpeed
	ParseVFs          = parseVFs
	PathError         = pathError
	ParseCgroups      = parseCgroups
	ParseCounter      = parseCounter
	ParseTrafficClass = parseTrafficClass
	ParseTOS          = parseTOS
	ParseTgid         = parseTgid
	ParseStartTime    = parseStartTime
	ReadAttr          = readAttr
)

// ParseDev is parseDev with its result in two.
func ParseDev(s string) (major, minor uint32, err error) {
	n, err := parseDev(s)
	return n.major, n.minor, err
}
