package drivertest

import (
	"flag"
	"runtime"
	"strconv"
)

// Waiting allows four tests at once for each processor, unless -parallel is set: tests that speak to a
// server wait most of the time. TestMain calls it before the tests run.
func Waiting() {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if set {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}
