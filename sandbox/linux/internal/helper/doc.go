// Package helper is the process between sandbox-exec and the program that it
// confines. It is the same binary, started again under another argv[0], and it
// decides nothing: it runs the steps of a block that its parent compiled, forks
// the program, reaps, and tells how the program ended.
//
// Its init pre-empts the main function of whatever program embeds the library,
// so it acts only on argv[0] and two descriptors of the right kinds. It imports
// next to nothing, so that it runs before the other packages initialise.
package helper
