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
const Magic uint64 = 0x01_6b6c_6278_6273_78 // "xsbxblk", 1

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
	Memory uint64 // bytes that the tree may use, watched by the helper; 0 = not watched
	Tasks  uint64 // processes and threads, likewise
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
	Failed  = 1 // to the parent: step A failed with error B; nothing was run
	Running = 2 // to the parent: every restriction holds, the program runs
	Exited  = 3 // to the parent: the program's wait status is A; B = 0 or what the watch ended it for
	Stopped = 6 // to the parent: signal A stopped the program; A = 0: it goes on
	Start   = 5 // to the helper: the block is written, run it
	Signal  = 4 // to the helper: send signal A to the program; B = 1: to the whole tree
)

// Why the watch ended the tree.
const (
	OverMemory = 1
	OverTasks  = 2
)
