//go:build race

package drivertest

// raceDetector tells that the race detector runs, which takes memory of its own.
const raceDetector = true
