package helper

// Name is the helper's argv[0], and all of its argv.
const Name = "sandbox-exec-init"

// Descriptors that a helper starts with, beside stdin, stdout and stderr.
const (
	SocketFD = 3 // SOCK_SEQPACKET: packets to and from the parent
	BlockFD  = 4 // memory file that holds the block
	FirstFD  = 5 // descriptors that the program keeps, then those that steps use
)

// Base is the address at which the helper maps the block, so that the parent
// can write addresses into it. It is low, where neither the Go heap nor a
// 39-bit address space gets in the way.
const Base = 0x2_0000_0000

// Magic starts a block. Its last byte is the version of the layout.
const Magic uint64 = 0x02_6b6c_6278_6273_78 // "xsbxblk", 2

// Header is the start of a block. The block is mapped shared, so that the
// forked child can leave word of a failed step.
type Header struct {
	Magic  uint64
	Size   uint64 // bytes of the block
	Steps  uint64 // offset of the first step
	Init   uint64 // number of steps that the helper runs
	Target uint64 // number of steps, after those, that the forked child runs
	PIDNS  uint64 // 1: the helper is PID 1 of a namespace of its own
	Cgroup uint64 // descriptor of the cgroup into which the program is forked, or 0
	Failed uint64 // 1 + index of the step that failed
	Errno  uint64 // and its error, or 0 for a step that had to fail and did not
}

// Step is one system call.
type Step struct {
	Nr    uint64
	Args  [6]uint64
	Cells uint64    // bit n: argument n is the offset of a cell that holds its value
	Dst   uint64    // offset of the cell that gets the result, or 0
	Want  uint64    // 0: must succeed; else the error that it must give
	Allow [2]uint64 // errors that do as well, or 0
	Skip  int64     // on another outcome: -1 = stop, n = go on after the n next steps
}

// Packets between helper and parent are Packet-sized and native-endian.
type Packet struct {
	Kind uint32
	A    uint32
	B    uint32
	_    uint32
}

// Kinds of packets.
const (
	// To the helper.
	Begin  = 1 // clone into the namespaces of the flags A; bit n-1 of B: the program ignores signal n
	Start  = 2 // the block is written, run it
	Signal = 3 // send signal A to the program; B = 1: to all of its PID namespace

	// To the parent.
	Cloned  = 4  // the helper goes on as process A, a child of the parent
	Failed  = 5  // step A failed with error B; nothing was run
	Shown   = 6  // descriptors of what the program sees: of /proc, then of file systems that hold its memory
	Offered = 7  // descriptors of sockets of the program's network
	Running = 8  // every restriction holds, the program runs
	Stopped = 9  // signal A stopped the program; A = 0: it goes on
	Exited  = 10 // the program's wait status is A
)

// CloneFailed and ForkFailed stand for a step in a Failed packet.
const (
	CloneFailed = ^uint32(0)
	ForkFailed  = ^uint32(1)
)
