//go:build !unix

package mediaapp

// maxOpenFiles returns how many files the process may have open: on Windows there is no limit but memory.
func maxOpenFiles() int64 { return 1 << 20 }
