//go:build !(cgo && linux)

package webp

var CheckFile = checkFile
