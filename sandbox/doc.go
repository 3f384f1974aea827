// Package sandbox is the vocabulary between the judge of a command and the
// system that confines it: what a process may do ([Spec]), what confines it
// ([Backend]), what was really enforced ([Report]), and how that can fail.
//
// It knows no commands, reads no files and picks no backend.
package sandbox
