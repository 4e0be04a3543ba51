//go:build !unix

package storagedrivers

func isNoSpace(error) bool { return false }
