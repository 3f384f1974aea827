// Package examples holds programs that embed the runner.
package examples
