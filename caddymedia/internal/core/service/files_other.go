//go:build !unix

package service

// MaxOpenFiles returns how many files and connections the process may have open. On Windows only
// memory limits them.
func MaxOpenFiles() int { return unlimitedFiles }
