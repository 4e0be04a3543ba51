// Package test has the assertions and helpers that the tests of several drivers share. What a
// driver must do is in package drivertest, and fakes of servers are with the tests that need them.
// Begin with [Must] and [Is].
package test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Soon bounds waits for background work, and operations that must not wait for a host.
const Soon = time.Minute

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

// IsNot asserts that err does not match other.
func IsNot(t testing.TB, err, other error, what ...any) {
	t.Helper()
	if errors.Is(err, other) {
		t.Errorf("%serror %v, which must not match %v", words(what), err, other)
	}
}

func words(what []any) string {
	if len(what) == 0 {
		return ""
	}
	text := fmt.Sprintln(what...)
	return text[:len(text)-1] + ": "
}

// Within asserts that f takes no longer than most.
func Within(t testing.TB, most time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > most {
		t.Errorf("%s took %v, want at most %v", what, took, most)
	}
}

// Eventually waits until f returns true.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Soon); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited for %s", what)
		}
	}
}

// Random returns size bytes, which depend on size.
func Random(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(b) // it never fails
	return b
}

// Files returns the names of the files below a folder, including hidden ones, and of the hidden
// folders. A missing folder has none.
func Files(t testing.TB, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path != folder && (!entry.IsDir() || entry.Name()[0] == '.') {
			name, _ := filepath.Rel(folder, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if !os.IsNotExist(err) {
		Must(t, err)
	}
	return names
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
