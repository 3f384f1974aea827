//go:build race

package main

// raceDetector uses memory of its own.
const raceDetector = true
