//go:build race

package drivertest

// raceDetector reports that the race detector is enabled, which needs memory.
const raceDetector = true
