package render

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the Clock that counts processor time, so that a busy machine costs no image its
// variant.
func ThreadTime() func() time.Duration {
	const perThread = 6 // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED of the kernel
	id := int32(^unix.Gettid()<<3 | perThread)
	now := func() (time.Duration, error) {
		var t unix.Timespec
		err := unix.ClockGettime(id, &t)
		return time.Duration(t.Nano()), err
	}
	start, err := now()
	if err != nil {
		return Elapsed()
	}
	elapsed := Elapsed()
	return func() time.Duration {
		t, err := now()
		if err != nil { // the thread has ended
			return elapsed()
		}
		return t - start
	}
}
