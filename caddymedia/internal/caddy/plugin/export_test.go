package plugin

import "log/slog"

// Pooled returns the number of open drivers and token stores, for tests.
func Pooled() int {
	n := 0
	pool.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// Warn writes the warnings of a start to log, for tests.
func (a *App) Warn(log *slog.Logger) {
	a.log = log
	a.warn()
}
