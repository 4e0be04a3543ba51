package imagingtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// These are the helpers of storagedrivers/internal/test, which packages elsewhere cannot import.

// Must ends the test if there is an error. The words of what say where.
func Must(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%serror %v", words(what), err)
	}
}

// Is asserts that err matches want; nil matches nil.
func Is(t testing.TB, err, want error, what ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%serror %v, want %v", words(what), err, want)
	}
}

// Equal asserts that got is want.
func Equal[T comparable](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%sgot %+v, want %+v", words(what), got, want)
	}
}

// Same asserts that two lists are equal.
func Same[E comparable](t testing.TB, got, want []E, what ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%sgot %q, want %q", words(what), fmt.Sprint(got), fmt.Sprint(want))
	}
}

// Says asserts that there is an error whose text contains want.
func Says(t testing.TB, err error, want string, what ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%serror %v, want %q in it", words(what), err, want)
	}
}

// Fails asserts that there is an error. What says what was done without one.
func Fails(t testing.TB, err error, what ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%sno error", words(what))
	}
}

func words(what []any) string {
	if len(what) == 0 {
		return ""
	}
	text := fmt.Sprintln(what...)
	return text[:len(text)-1] + ": "
}
