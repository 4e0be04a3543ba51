//go:build !race

package drivertest

// RaceDetector reports whether the race detector is enabled.
const RaceDetector = false
