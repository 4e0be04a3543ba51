//go:build !linux

package render

// ThreadTime is the Clock for processor time. The standard library does not know that of a thread
// here, so it is [Elapsed].
var ThreadTime Clock = Elapsed
