package service

import (
	"errors"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestProcess: services of one process with equal limits have one maker of images, and one count of
// logins. Those with other limits have their own.
func TestProcess(t *testing.T) {
	t.Parallel()
	process := NewProcess()
	partsWith := func(change func(*Parts)) Parts {
		parts := partsOf(t)
		parts.Process, parts.Limits.Images.Workers, parts.Limits.Logins.Failures = process, 2, 5
		change(&parts)
		return parts
	}
	first := start(t, partsWith(func(*Parts) {}))
	for _, c := range []struct {
		name           string
		change         func(*Parts)
		images, logins bool // are shared
	}{
		{"equal limits", func(*Parts) {}, true, true},
		{"another limit of requests", func(p *Parts) { p.Limits.MaxUploads = 1 }, true, true},
		{"other limits of images", func(p *Parts) { p.Limits.Images.Workers = 1 }, false, true},
		{"with an encoder", func(p *Parts) { p.Limits.NeedsEncoder = true }, false, true},
		{"other limits of logins", func(p *Parts) { p.Limits.Logins.Failures = 1 }, true, false},
		{"another process", func(p *Parts) { p.Process = NewProcess() }, false, false},
		{"its own process", func(p *Parts) { p.Process = nil }, false, false},
	} {
		s := start(t, partsWith(c.change))
		images, logins := s.uploader.Derived.Images == first.uploader.Derived.Images, s.logins == first.logins
		if images != c.images || logins != c.logins {
			t.Errorf("%s: the images are shared: %t, want %t; the logins: %t, want %t", c.name, images, c.images, logins, c.logins)
		}
	}
}

// TestProcessIsReleased: a process keeps what services have shared until the last of them is closed
// and its last reference is released. A service that could not be made keeps nothing.
func TestProcessIsReleased(t *testing.T) {
	t.Parallel()
	process := NewProcess()
	want := func(when string, kept int) {
		t.Helper()
		if images, logins := len(process.images.all), len(process.logins.all); images != kept || logins != kept {
			t.Errorf("%s: %d makers of images and %d counts of logins are kept, want %d", when, images, logins, kept)
		}
	}
	services := make([]*Service, 2)
	for i := range services {
		parts := partsOf(t)
		parts.Process = process
		services[i] = start(t, parts)
	}
	want("of two services with equal limits", 1)
	if err := services[0].Close(); err != nil {
		t.Error(err)
	}
	want("after the first is closed", 1)
	_, release, err := services[1].Acquire()
	if err != nil {
		t.Fatal(err)
	}
	if err := services[1].Close(); err != nil {
		t.Error(err)
	}
	want("before the last reference is released", 1)
	release()
	want("after the last is closed", 0)
	parts := partsOf(t)
	parts.Process = process
	parts.Aliases = func(map[string]*storagedrivers.Storage) (Aliases, error) { return nil, errors.New("no aliases") }
	if _, err := New(parts); err == nil {
		t.Error("made without aliases")
	}
	parts = partsOf(t)
	parts.Process, parts.Resumable.MaxBytes = process, 1
	if _, err := New(parts); err == nil {
		t.Error("made without room for uploads")
	}
	want("after two errors", 0)
}
