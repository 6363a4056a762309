package check

// modelSpeeds are the speeds, in Gb/s, of the fastest InfiniBand cards of a
// type (hca_type). A board of the type may be made for less.
var modelSpeeds = map[string]float64{
	"MT4115": 100, // ConnectX-4
	"MT4119": 100, // ConnectX-5
	"MT4121": 100, // ConnectX-5 Ex
	"MT4123": 200, // ConnectX-6
	"MT4129": 400, // ConnectX-7
	"MT4131": 800, // ConnectX-8
}
