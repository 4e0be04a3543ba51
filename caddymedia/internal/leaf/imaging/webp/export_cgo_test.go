//go:build cgo && linux

package webp

var (
	CheckVersion = checkVersion
	CheckABI     = checkABI
	Failure      = failure
)
