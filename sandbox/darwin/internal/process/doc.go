// Package process starts a program under a Seatbelt profile, keeps track of the
// tree of processes that it becomes, and ends it.
//
// Three processes take part, all of this same binary. The one that embeds the
// library starts a helper outside of the sandbox. That one starts
// /usr/bin/sandbox-exec, which applies the profile and turns into a helper
// inside, under the same number. The helper inside tries what must not work,
// tells the one outside how that went, and turns into the program. The helper
// outside stays: it waits for the program, watches what the tree uses, and ends
// it, also when the embedding process is gone.
//
//	parent ──Start──▶ outside ──fork──▶ /usr/bin/sandbox-exec ──exec──▶ inside ──exec──▶ program
//	                     ◀──Held───────────────────────────────────────────┘
//	       ◀──Running──┘ ──Go──────────────────────────────────────────────▶
//
// macOS has neither PID namespaces nor subreapers. A process belongs to the tree
// if its parent, its process group or its session does, and is looked for at
// every fork. One that leaves all three between two looks is not found any more:
// it outlives the program, still in the sandbox.
//
// What differs between systems stands in system_darwin.go. The same for Linux is
// there for the tests: no product is built with it.
package process
