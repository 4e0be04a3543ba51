//go:build !unix

package mediahttp

// maxDescriptors returns how many files and connections the process may have open.
func maxDescriptors() int { return unlimited }
