package mediaapp

// Pooled returns the number of open drivers, token stores and login counters, for tests.
func Pooled() int {
	n := 0
	pool.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}
