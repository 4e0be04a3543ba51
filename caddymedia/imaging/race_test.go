//go:build race

package imaging_test

func init() { raceDetector = true }
