//go:build race

package integration

func init() { raceDetector = true }
