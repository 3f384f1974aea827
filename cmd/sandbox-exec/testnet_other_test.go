//go:build !linux

package main

import (
	"fmt"
	"os"
)

func testnet() {
	fmt.Fprintln(os.Stderr, "testnet: only Linux has networks of a process's own")
	os.Exit(125)
}
