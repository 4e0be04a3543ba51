package storagedrivers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// attempt is a Put of a recorder.
type attempt struct {
	key   string
	opts  storagedrivers.PutOptions
	owner string
	read  int
	over  bool
	err   error
}

// recorder is a driver that records its Puts.
type recorder struct {
	stub
	after func(attempt int, info storagedrivers.Info, err error) (storagedrivers.Info, error)

	mu   sync.Mutex
	puts []*attempt
}

func newRecorder() *recorder {
	r := &recorder{stub: stub{Driver: memory.New()}}
	r.put = r.record
	return r
}

func (r *recorder) record(
	ctx context.Context, key string, src io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	r.mu.Lock()
	a, n := &attempt{key: key, opts: opts, owner: storagedrivers.Owner(ctx)}, len(r.puts)
	r.puts = append(r.puts, a)
	r.mu.Unlock()
	info, err := r.Driver.Put(ctx, key, &counting{src, r, a}, opts)
	if r.after != nil {
		info, err = r.after(n, info, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a.over, a.err = true, err
	return info, err
}

type counting struct {
	io.ReadSeeker
	r *recorder
	a *attempt
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.a.read += n
	return n, err
}

// attempts returns the Puts so far, when all of them wait or have ended.
func (r *recorder) attempts() []attempt {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]attempt, len(r.puts))
	for i, a := range r.puts {
		all[i] = *a
	}
	return all
}

var large = strings.Repeat("0123456789abcdef", 9*mib/16)

// stageFor stages parts for key.
func stageFor(t *testing.T, s *storagedrivers.Storage, key string, opts storagedrivers.PutOptions, parts ...string) storagedrivers.Staged {
	t.Helper()
	staged, err := s.StageFor(storagedrivers.WithOwner(t.Context(), "owner"), key, opts)
	test.Must(t, err)
	for _, part := range parts {
		_, err := io.WriteString(staged, part)
		test.Must(t, err)
	}
	return staged
}

// TestHeadStart: the bytes of a large object are sent before its commit, which makes it visible.
func TestHeadStart(t *testing.T) {
	t.Parallel()
	for _, opts := range []storagedrivers.PutOptions{create, overwrite, {ID: "OWN", ContentType: "text/x", CacheControl: "no-store"}} {
		synctest.Test(t, func(t *testing.T) {
			var observed []string
			r := newRecorder()
			s := open(t, r, storagedrivers.Options{Observe: func(op string, _ time.Duration, err error) {
				observed = append(observed, fmt.Sprint(op, err))
			}})
			staged := stageFor(t, s, "key", opts, large[:8*mib])
			test.Equal(t, len(r.attempts()), 0, "sent", "times before the object is large")
			for _, part := range []string{large[8*mib:], "more"} {
				_, err := io.WriteString(staged, part)
				test.Is(t, err, nil)
				time.Sleep(4 * time.Second)
			}
			if puts := r.attempts(); len(puts) != 1 || puts[0].read != len(large)+4 || puts[0].owner != "owner" || puts[0].opts.ID == "" {
				t.Errorf("sent %+v", puts)
			}
			_, err := r.Stat(t.Context(), "key")
			test.Is(t, err, fs.ErrNotExist)
			seeks(t, staged, 0, io.SeekStart, 0)
			reads(t, staged, 10, large[:10])
			test.Is(t, commit(t.Context(), s, staged, "key", opts), nil)
			if len(r.attempts()) != 1 || !slices.Equal(observed, []string{"commit<nil>"}) {
				t.Errorf("sent %d times, observed %q", len(r.puts), observed)
			}
			test.Is(t, staged.Close(), nil)
			has(t, s, "key", large+"more")
		})
	}
}

// TestHeadStartInVain: what was sent is discarded, and the commit sends the object again.
func TestHeadStartInVain(t *testing.T) {
	t.Parallel()
	sameID := func(puts []attempt) bool { return puts[0].opts.ID == puts[1].opts.ID }
	broken := errors.New("broken")
	failing := func(err error) func(int, storagedrivers.Info, error) (storagedrivers.Info, error) {
		return func(n int, info storagedrivers.Info, own error) (storagedrivers.Info, error) {
			if n == 0 {
				return storagedrivers.Info{}, err
			}
			return info, own
		}
	}
	for name, tt := range map[string]struct {
		planned storagedrivers.PutOptions
		key     string // of the commit
		opts    storagedrivers.PutOptions
		pause   time.Duration // before the commit
		fail    func(op, key string) error
		after   func(int, storagedrivers.Info, error) (storagedrivers.Info, error)
		check   func([]attempt) bool
	}{
		"another key":        {key: "other"},
		"another mode":       {key: "key", opts: overwrite},
		"another type":       {key: "key", opts: storagedrivers.PutOptions{ContentType: "text/x"}},
		"another ID":         {key: "key", opts: storagedrivers.PutOptions{ID: "OTHER"}},
		"stalled":            {key: "key", pause: 6 * time.Second, check: sameID},
		"refused":            {key: "key", fail: failOnce(fs.ErrPermission)},
		"unavailable before": {key: "key", fail: failOnce(storagedrivers.ErrUnavailable)},
		"taken meanwhile":    {key: "key", fail: failOnce(fs.ErrExist)},
		"broken":             {planned: overwrite, key: "key", opts: overwrite, after: failing(broken)},
		"panic": {key: "key", after: func(n int, info storagedrivers.Info, err error) (storagedrivers.Info, error) {
			if n == 0 {
				panic("broken")
			}
			return info, err
		}, fail: failOnce(fs.ErrPermission)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var observed []string
				r := newRecorder()
				r.Fail, r.after = tt.fail, tt.after
				s := open(t, r, storagedrivers.Options{Observe: func(op string, _ time.Duration, err error) {
					observed = append(observed, fmt.Sprint(op, err))
				}})
				staged := stageFor(t, s, "key", tt.planned, large)
				r.attempts()
				time.Sleep(tt.pause)
				test.Is(t, commit(t.Context(), s, staged, tt.key, tt.opts), nil)
				test.Is(t, staged.Close(), nil)
				puts := r.attempts()
				if len(puts) != 2 || tt.check != nil && !tt.check(puts) {
					t.Errorf("sent %+v", puts)
				}
				test.Same(t, observed, []string{"commit<nil>"}, "observed")
				has(t, s, tt.key, large)
				if tt.key != "key" {
					missing(t, s, "key")
				}
			})
		})
	}
}

// failOnce returns a function that fails the first Put.
func failOnce(err error) func(op, key string) error {
	var once sync.Once
	return func(op, _ string) (failed error) {
		if op == "put" {
			once.Do(func() { failed = err })
		}
		return failed
	}
}

// TestHeadStartEnds: an object that is not committed, or receives no bytes, holds nothing.
func TestHeadStartEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := open(t, r, storagedrivers.Options{})
		closed, stalled := stageFor(t, s, "closed", create, large), stageFor(t, s, "stalled", create, large)
		r.attempts()
		test.Is(t, closed.Close(), nil)
		time.Sleep(5*time.Second + 1)
		puts := r.attempts()
		if len(puts) != 2 {
			t.Fatalf("sent %d times, want 2", len(puts))
		}
		for _, put := range puts {
			if !put.over || put.err == nil || errors.Is(put.err, context.Canceled) {
				t.Errorf("%s is over: %t, error %v", put.key, put.over, put.err)
			}
		}
		_, err := io.WriteString(stalled, "late")
		test.Is(t, err, nil)
		test.Is(t, stalled.Close(), nil)
		page, err := s.List(t.Context(), storagedrivers.ListOptions{})
		test.Is(t, err, nil)
		test.Equal(t, len(page.Objects), 0, "stored", page.Objects)
	})
}

// TestHeadStartsAreFew: a fifth object waits until another one has ended.
func TestHeadStartsAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := open(t, r, storagedrivers.Options{})
		all := make([]storagedrivers.Staged, 5)
		for i := range all {
			all[i] = stageFor(t, s, fmt.Sprint(i), create, large)
		}
		test.Equal(t, len(r.attempts()), 4, "head starts")
		test.Is(t, all[0].Close(), nil)
		_, err := io.WriteString(all[4], "more")
		test.Is(t, err, nil)
		if puts := r.attempts(); len(puts) != 5 || puts[4].read != len(large)+4 {
			t.Errorf("%d head starts, want 5", len(puts))
		}
		for i, staged := range all[1:] {
			test.Is(t, commit(t.Context(), s, staged, fmt.Sprint(i+1), create), nil)
			test.Is(t, staged.Close(), nil)
		}
		test.Equal(t, len(r.attempts()), 5, "sent", "times")
	})
}

// TestHeadStartLostReply: the attempt after a lost reply has the same ID.
func TestHeadStartLostReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		var stored storagedrivers.Info
		r.after = func(n int, info storagedrivers.Info, err error) (storagedrivers.Info, error) {
			if n == 0 {
				stored = info
				return storagedrivers.Info{}, storagedrivers.ErrUnavailable
			}
			if errors.Is(err, fs.ErrExist) && r.puts[n].opts.ID == r.puts[0].opts.ID {
				return stored, nil
			}
			return info, err
		}
		s := open(t, r, storagedrivers.Options{})
		staged := stageFor(t, s, "key", create, large)
		test.Is(t, commit(t.Context(), s, staged, "key", create), nil)
		test.Is(t, staged.Close(), nil)
		has(t, s, "key", large)
		if puts := r.attempts(); len(puts) != 2 {
			t.Errorf("sent %+v", puts)
		}
	})
}

// TestHeadStartChanged: an object whose condition the backend refuses is not sent again.
func TestHeadStartChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		s := open(t, r, storagedrivers.Options{})
		put(t, s, "key", "old")
		old, err := s.Stat(t.Context(), "key")
		test.Is(t, err, nil)
		r.after = func(int, storagedrivers.Info, error) (storagedrivers.Info, error) {
			return storagedrivers.Info{}, storagedrivers.ErrChanged
		}
		opts := overwrite
		opts.IfMatch = old.ETag
		staged := stageFor(t, s, "key", opts, large)
		test.Is(t, commit(t.Context(), s, staged, "key", opts), storagedrivers.ErrChanged)
		test.Is(t, staged.Close(), nil)
		if puts := r.attempts(); len(puts) != 2 || puts[1].read != len(large) {
			t.Errorf("sent %d times, want once", len(puts)-1)
		}
	})
}

// TestHeadStartTogether: an object of a failed commit is not visible, whether it is made before or
// after the change that fails.
func TestHeadStartTogether(t *testing.T) {
	t.Parallel()
	for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			r.Fail = func(op, key string) error {
				if op == "put" && key == "bad" {
					return fs.ErrPermission
				}
				return nil
			}
			s := open(t, r, storagedrivers.Options{})
			early, bad := stageFor(t, s, "key", opts, large), stage(t, s, "bad")
			r.attempts()
			for _, other := range []storagedrivers.PutOptions{create, overwrite} {
				_, err := s.Commit(t.Context(), storagedrivers.Change{Staged: bad, Key: "bad", Options: other},
					storagedrivers.Change{Staged: early, Key: "key", Options: opts})
				test.Is(t, err, fs.ErrPermission)
				missing(t, s, "key")
			}
			test.Is(t, commit(t.Context(), s, early, "key", opts), nil)
			test.Is(t, early.Close(), nil)
			test.Is(t, bad.Close(), nil)
			has(t, s, "key", large)
		})
	}
}

// TestHeadStartCancelled: the end of the commit's context ends the Put.
func TestHeadStartCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		r.put = func(own context.Context, _ string, src io.ReadSeeker, _ storagedrivers.PutOptions) (storagedrivers.Info, error) {
			if size, err := storagedrivers.SourceSize(src); size != -1 || err != nil {
				t.Errorf("the source has %d bytes, error %v", size, err)
			}
			var got bytes.Buffer
			_, err := got.ReadFrom(src)
			test.Is(t, err, nil)
			if size, err := storagedrivers.SourceSize(src); size != int64(len(large)) || got.String() != large || err != nil {
				t.Errorf("the source has %d bytes, error %v", size, err)
			}
			cancel()
			<-own.Done()
			return storagedrivers.Info{}, own.Err()
		}
		s := open(t, r, storagedrivers.Options{})
		staged := stageFor(t, s, "key", create, large)
		synctest.Wait()
		test.Is(t, commit(ctx, s, staged, "key", create), context.Canceled)
		test.Is(t, staged.Close(), nil)
	})
}

// TestNoHeadStart: a driver that needs the size is called by the commit only, and no driver while
// the circuit is open.
func TestNoHeadStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		r.features = &storagedrivers.Features{}
		s := open(t, r, storagedrivers.Options{})
		staged := stageFor(t, s, "key", create, large)
		test.Equal(t, len(r.attempts()), 0, "sent", "times")
		test.Is(t, commit(t.Context(), s, staged, "key", create), nil)
		test.Is(t, staged.Close(), nil)

		r.features = nil
		s = open(t, r, storagedrivers.Options{Close: func() error { return nil }})
		staged = stageFor(t, s, "other", create, large[:mib])
		r.stat = func(context.Context, string) (storagedrivers.Info, error) {
			return storagedrivers.Info{}, storagedrivers.ErrUnavailable
		}
		for range 5 {
			_, err := s.Stat(t.Context(), "key")
			test.Is(t, err, storagedrivers.ErrUnavailable)
		}
		_, err := io.WriteString(staged, large)
		test.Is(t, err, nil)
		test.Equal(t, len(r.attempts()), 1, "sent", "times")
		test.Is(t, staged.Close(), nil)
	})
}
