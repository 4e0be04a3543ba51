//go:build !unix

package media

// MaxOpenFiles returns how many files and connections the process may have open: on Windows there
// is no limit but memory.
func MaxOpenFiles() int { return unlimitedFiles }
