package storagedrivers_test

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(d *stub) // changes the driver
		steps string        // "!" behind those that fail
		err   error
		note  string // a part of it
		left  int    // objects
	}{
		{
			name:  "good",
			steps: "check, create, create again, read, range, overwrite, list, delete, stat after delete",
		},
		{
			name:  "best effort",
			spoil: func(d *stub) { d.features = &storagedrivers.Features{} },
			steps: "check, create, create again, read, range, overwrite, list, delete, stat after delete",
			note:  "could overwrite each other",
		},
		{
			name:  "down",
			spoil: failOn("check", storagedrivers.ErrUnavailable),
			steps: "check!",
			err:   storagedrivers.ErrUnavailable,
		},
		{
			name:  "not writable",
			spoil: failOn("put", fs.ErrPermission),
			steps: "check, create!",
			err:   fs.ErrPermission,
		},
		{
			name: "create not refused",
			spoil: func(d *stub) {
				d.put = func(
					ctx context.Context, key string, r io.ReadSeeker, _ storagedrivers.PutOptions,
				) (storagedrivers.Info, error) {
					return d.Driver.Put(ctx, key, r, overwrite)
				}
			},
			steps: "check, create, create again!, read, range, overwrite, list, delete, stat after delete",
			note:  "two uploads of one name could overwrite each other",
		},
		{
			name: "no overwriting",
			spoil: func(d *stub) {
				d.put = func(
					ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
				) (storagedrivers.Info, error) {
					if opts.Mode == storagedrivers.Overwrite {
						return storagedrivers.Info{}, fs.ErrPermission
					}
					return d.Driver.Put(ctx, key, r, opts)
				}
			},
			steps: "check, create, create again, read, range, overwrite!, list, delete, stat after delete",
			err:   fs.ErrPermission,
		},
		{
			name: "ranges ignored",
			spoil: func(d *stub) {
				d.open = func(
					ctx context.Context, key string, _ storagedrivers.Range,
				) (io.ReadCloser, storagedrivers.Info, error) {
					return d.Driver.Open(ctx, key, all)
				}
			},
			steps: "check, create, create again, read, range!, overwrite, list, delete, stat after delete",
		},
		{
			name:  "not readable",
			spoil: failOn("open", fs.ErrPermission),
			steps: "check, create, create again, read!, range!, overwrite!, list, delete, stat after delete",
			err:   fs.ErrPermission,
		},
		{
			name: "not listable",
			spoil: func(d *stub) {
				once := fs.ErrPermission
				d.Fail = func(op, _ string) error {
					if op != "list" {
						return nil
					}
					err := once
					once = nil
					return err
				}
			},
			steps: "check, create, create again, read, range, overwrite, list!, delete, stat after delete",
			err:   fs.ErrPermission,
		},
		{
			name:  "not deletable",
			spoil: failOn("delete", fs.ErrPermission),
			steps: "check, create, create again, read, range, overwrite, list, delete!, clean up!",
			err:   fs.ErrPermission,
			note:  "may have stayed behind",
			left:  1,
		},
		{
			name: "deletion does nothing",
			spoil: func(d *stub) {
				d.remove = func(context.Context, string, storagedrivers.DeleteOptions) error { return nil }
			},
			steps: "check, create, create again, read, range, overwrite, list, delete, stat after delete!, clean up",
			left:  1,
		},
		{
			name:  "stat fails",
			spoil: failOn("stat", fs.ErrPermission),
			steps: "check, create, create again, read, range, overwrite, list, delete, stat after delete!, clean up",
			err:   fs.ErrPermission,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &stub{Driver: memory.New()}
			if tt.spoil != nil {
				tt.spoil(d)
			}
			s := open(t, d, storagedrivers.Options{})
			report := s.Probe(t.Context())
			steps := make([]string, 0, len(report.Steps))
			var notes string
			titles := map[string]bool{}
			for _, step := range report.Steps {
				name := step.Name
				if titles[step.Title] || step.Title == "" {
					t.Errorf("the title of %s is %q", name, step.Title)
				}
				titles[step.Title] = true
				if step.Err != nil {
					name += "!"
				}
				steps = append(steps, name)
				notes += step.Note
			}
			if got := strings.Join(steps, ", "); got != tt.steps {
				t.Errorf("steps %s\nwant  %s\nerror %v", got, tt.steps, report.Err())
			}
			if failed := strings.Contains(tt.steps, "!"); report.OK() == failed {
				t.Errorf("ok %t, error %v", report.OK(), report.Err())
			}
			if tt.err != nil {
				test.Is(t, report.Err(), tt.err)
			} else if explained := storagedrivers.CauseOf(report.Err()) != ""; explained == report.OK() {
				t.Errorf("error %v has a cause: %t", report.Err(), explained)
			}
			if !strings.Contains(notes, tt.note) || (notes == "") != (tt.note == "") {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
			page, err := s.List(t.Context(), storagedrivers.ListOptions{})
			test.Is(t, err, nil)
			test.Equal(t, len(page.Objects), tt.left, "objects left")
		})
	}
}

func failOn(op string, err error) func(*stub) {
	return func(d *stub) {
		d.Fail = func(o, _ string) error {
			if o == op {
				return err
			}
			return nil
		}
	}
}

func TestProbeTakesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		d := memory.New()
		d.Fail = func(op, key string) error {
			time.Sleep(time.Second)
			if op == "put" {
				keys = append(keys, key)
			}
			return nil
		}
		s := open(t, d, storagedrivers.Options{})
		for range 2 {
			report := s.Probe(t.Context())
			for _, step := range report.Steps {
				want := time.Second
				if step.Name == "overwrite" { // and read
					want *= 2
				}
				test.Equal(t, step.Took, want, step.Name, "took")
			}
			test.Is(t, report.Err(), nil)
		}
		if keys[0] == keys[len(keys)-1] {
			t.Errorf("both probes used %q", keys[0])
		}
		if !strings.HasPrefix(keys[0], "media-probe-") || !strings.HasSuffix(keys[0], ".txt") {
			t.Errorf("probed with %q", keys[0])
		}
	})
}

// TestProbeCancelled: a cancelled probe removes its object.
func TestProbeCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := memory.New()
	d.Fail = func(op, _ string) error {
		if op == "open" {
			cancel()
		}
		return nil
	}
	s := open(t, d, storagedrivers.Options{})
	report := s.Probe(ctx)
	test.Is(t, report.Err(), context.Canceled)
	page, err := s.List(t.Context(), storagedrivers.ListOptions{})
	if err != nil || len(page.Objects) > 0 {
		t.Errorf("%d objects left, error %v", len(page.Objects), err)
	}
}

func TestProbeOfClosedStorage(t *testing.T) {
	t.Parallel()
	s := storagedrivers.New("test", memory.New(), storagedrivers.Options{})
	test.Is(t, s.Close(), nil)
	test.Is(t, s.Probe(t.Context()).Err(), storagedrivers.ErrClosed)
}
