package storagecopy_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// dating is a driver whose objects have other times.
type dating struct {
	*memory.Driver
	date, list func(time.Time) time.Time
}

// dated returns a storage that changes the times of its objects.
func dated(driver *memory.Driver, date func(time.Time) time.Time) *storagedrivers.Storage {
	return storagedrivers.New("dated", &dating{driver, date, date}, storagedrivers.Options{})
}

func (d *dating) Put(
	ctx context.Context, key string, body io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	info, err := d.Driver.Put(ctx, key, body, opts)
	info.ModTime = d.date(info.ModTime)
	return info, err
}

func (d *dating) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	info.ModTime = d.date(info.ModTime)
	return body, info, err
}

func (d *dating) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.ModTime = d.date(info.ModTime)
	return info, err
}

func (d *dating) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, err := d.Driver.List(ctx, opts)
	for i := range page.Objects {
		page.Objects[i].ModTime = d.list(page.Objects[i].ModTime)
	}
	return page, err
}

// TestIsDone: an object in the destination is done if it has the same size and is later. Otherwise
// its bytes are compared.
func TestIsDone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 20, 12, 0, 0, 400_000_000, time.UTC)
	at := func(d time.Duration) func(time.Time) time.Time {
		return func(time.Time) time.Time { return now.Add(d) }
	}
	second := now.Truncate(time.Second).Sub(now)
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		from, to, toList func(time.Time) time.Time // toList: as to
		there            string                    // "source" is in the source
		checksum         bool
		want             want
		reads            bool // the destination
	}{
		"later":                       {at(0), at(time.Hour), nil, "source", false, want{present: 1}, false},
		"later by far":                {at(0), at(3 * day), nil, "source", false, want{present: 1}, false},
		"later, other bytes":          {at(0), at(time.Hour), nil, "ecruos", false, want{present: 1}, false},
		"later, with --checksum":      {at(0), at(3 * day), nil, "source", true, want{present: 1}, true},
		"other bytes, --checksum":     {at(0), at(3 * day), nil, "ecruos", true, want{failed: 1}, true},
		"half":                        {at(0), at(3 * day), nil, "sou", false, want{failed: 1}, false},
		"older":                       {at(0), at(-time.Hour), nil, "source", false, want{present: 1}, true},
		"older, other bytes":          {at(0), at(-time.Hour), nil, "ecruos", false, want{failed: 1}, true},
		"same second":                 {at(0), at(second), nil, "ecruos", false, want{failed: 1}, true},
		"both in whole seconds":       {at(second), at(second), nil, "ecruos", false, want{failed: 1}, true},
		"source in whole seconds":     {at(second), at(0), nil, "ecruos", false, want{failed: 1}, true},
		"next second":                 {at(second), at(second + time.Second), nil, "source", false, want{present: 1}, false},
		"no times there":              {at(0), func(time.Time) time.Time { return time.Time{} }, nil, "ecruos", false, want{failed: 1}, true},
		"no times in the source":      {func(time.Time) time.Time { return time.Time{} }, at(0), nil, "ecruos", false, want{failed: 1}, true},
		"listed later than it is":     {at(0), at(-time.Hour), at(14 * time.Hour), "ecruos", false, want{failed: 1}, true},
		"listed earlier than it is":   {at(0), at(time.Hour), at(-14 * time.Hour), "source", false, want{present: 1}, false},
		"listed by the day of a zone": {at(0), at(-time.Hour), at(38 * time.Hour), "ecruos", false, want{failed: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			if test.toList == nil {
				test.toList = test.to
			}
			p.opts.From = dated(p.from, test.from)
			p.opts.To = storagedrivers.New("to", &dating{p.to, test.to, test.toList}, storagedrivers.Options{})
			p.opts.Checksum = test.checksum
			p.put(p.opts.From, "a", "source")
			p.put(p.opts.To, "a", test.there)
			read := false
			p.to.Fail = func(op, _ string) error {
				read = read || op == "open"
				return nil
			}
			p.run(test.want)
			if read != test.reads {
				t.Errorf("the destination was read: %v", read)
			}
			if test.want.failed > 0 {
				p.opts.Overwrite = true
				p.run(want{copied: 1})
				p.mustBeSame()
			}
		})
	}
}
