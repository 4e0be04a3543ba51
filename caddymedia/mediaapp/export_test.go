package mediaapp

// Pooled is how many drivers, token stores and login counters are open, for tests.
func Pooled() int {
	n := 0
	pool.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}
