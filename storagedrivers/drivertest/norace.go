//go:build !race

package drivertest

// raceDetector reports whether the race detector is enabled.
const raceDetector = false
