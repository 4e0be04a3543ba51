//go:build !unix

package local

func systemSentinel(error) error { return nil }

func isNotDir(error) bool { return false }
