// Package examples holds programs that embed the runner, and harnesses in other
// languages that call the command line.
package examples
