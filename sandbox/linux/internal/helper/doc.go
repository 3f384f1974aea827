// Package helper is the process between sandbox-exec and the program that it
// confines. It is the same binary, started again under another argv[0], and it
// decides nothing: it clones itself into namespaces, runs the steps of a block
// that its parent compiled, forks the program, reaps, and tells how the program
// ended.
//
// A Go runtime takes a millisecond to start, so the helper needs none: its
// functions allocate nothing, start no goroutine and do their system calls raw.
// Where the linker was told to (-E with the symbol helper.entry), the kernel
// enters the helper before the runtime; else a guarded init leaves the runtime.
// All that follows is the same code.
//
// That init pre-empts the main function of whatever program embeds the library,
// so it acts only on argv[0] and a descriptor of the right kind. It imports
// next to nothing, so that it runs before the other packages initialise.
package helper
