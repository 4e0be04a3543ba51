//go:build !race

package drivertest

// raceDetector reports whether the race detector is enabled. It needs memory.
const raceDetector = false
