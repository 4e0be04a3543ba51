//go:build race

package site

func init() { RaceDetector = true }
