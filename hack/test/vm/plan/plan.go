// Package plan is the contract between the lab's two sides: the host writes a Plan into the directory that it shares
// with the virtual machine, pid 1 of the guest carries it out and leaves a Result beside it. It holds data only.
package plan

// Names and places that both sides, and the tests that run inside, agree on.
const (
	// Share is where the guest mounts the shared directory.
	Share = "/host"
	// ShareTag is the 9p mount tag of the shared directory.
	ShareTag = "host"
	// PlanFile is the Plan, as JSON, in the shared directory.
	PlanFile = "plan.json"
	// ResultFile is the Result, as JSON, in the shared directory. It is missing when the guest died on the way.
	ResultFile = "result.json"
	// BootModules is the directory of the initramfs whose modules pid 1 loads first, in the order of their names.
	BootModules = "/modules"
	// ExitPort is the I/O port whose first byte written ends the machine with that exit status.
	ExitPort = 0xf4
	// ExitDone is the machine's exit status when the plan was carried out, whether its tests passed or not. Zero is not
	// used, as QEMU turns status n into 2n+1 and has 1 for errors of its own.
	ExitDone byte = 1
	// ExitBroken is the machine's exit status when the plan could not be carried out.
	ExitBroken byte = 2
	// InVM is the environment variable that tells a test that it runs inside the lab; its value is the machine's name.
	InVM = "RAILHEAD_IN_VM"
	// EarnedSkip starts the message of a skip that is meant; every other skip inside the lab is a failure.
	EarnedSkip = "earned skip: "
)

// Plan is what one boot of one machine does.
type Plan struct {
	// Machine is the machine's name in the table.
	Machine string
	// Files are copied over the root file system before any of Modules is loaded.
	Files []File
	// Modules are loaded in this order, with what they depend on, before the first suite.
	Modules []Module
	// Suites are run one after the other, whatever the outcome of those before.
	Suites []Suite
	// Shell, when set, opens a shell on the console once the suites have run.
	Shell bool
}

// File is one file that the machine has in place of the one in its image.
type File struct {
	// From is its path relative to the shared directory.
	From string
	// To is its absolute path in the guest.
	To string
}

// Module is one kernel module with its parameters ("name=value").
type Module struct {
	Name   string
	Params []string `json:",omitempty"`
}

// Suite is one test binary with its arguments. All paths are relative to the shared directory.
type Suite struct {
	// Package is the import path of the package under test.
	Package string
	// Dir is the working directory, which has the package's testdata.
	Dir string
	// Binary is the test binary.
	Binary string
	// Args are its arguments.
	Args []string
	// Output receives its standard output and standard error.
	Output string
}

// Result is what the guest says of itself when it has carried out a plan.
type Result struct {
	// Kernel is the release of the running kernel, as uname has it.
	Kernel string
	// BootSeconds is the guest's uptime when the first suite started.
	BootSeconds float64
	// Exits are the suites' exit statuses, in their order; -1 is a suite that a signal ended.
	Exits []int
	// Error is why the plan could not be carried out, or empty. It is not about failing tests.
	Error string
}
