package testservice

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

// Failing makes an operation of the storage fail for the keys with a prefix.
func (s *Site) Failing(err error, operation, prefix string) {
	s.Driver.Fail = func(op, key string) error {
		if op == operation && strings.HasPrefix(key, prefix) {
			return err
		}
		return nil
	}
}

// FailByName is a Fail of a memory.Driver that fails by the name of an object: full, forbidden or
// down.
func FailByName(_, key string) error {
	name, _, _ := strings.Cut(path.Base(key), ".")
	return map[string]error{
		"full": storagedrivers.ErrNoSpace, "forbidden": fs.ErrPermission, "down": storagedrivers.ErrUnavailable,
	}[name]
}

// Store is a token store that fails on request.
type Store struct {
	tokens.Store
	Fails, NoTakes atomic.Bool      // NoTakes: tickets cannot be changed
	NoLoads        atomic.Int32     // how many of the next looks at tokens fail
	Ended          atomic.Bool      // every ticket ends before it is counted on
	Saved          func(key string) // called after a token or ticket is stored; nil for nothing
	Unextended     atomic.Bool      // leases cannot be extended
	Step           func() error     // called before each change of a request; nil for nothing
	Before         func(op string)  // called before each operation: load, save (a new entry) or take; nil for nothing

	mu      sync.Mutex
	Indexes []string // of the answers that were kept
}

// Close does nothing, because several services share the store.
func (*Store) Close() error { return nil }

const tokenKeys = "token/"

func isRequest(key string) bool {
	return strings.HasPrefix(key, "request/") || strings.HasPrefix(key, tokens.Volatile)
}

// Update implements [tokens.Store]. A change of a request is a step, at which a process may end.
func (s *Store) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	isToken := strings.HasPrefix(key, tokenKeys)
	if s.Before != nil {
		if old, err := s.Store.Get(ctx, key); err == nil && old.Value == nil {
			s.Before("save")
		} else {
			s.Before("take")
		}
	}
	switch {
	case s.Fails.Load(), isRequest(key) && s.Step != nil && s.Step() != nil:
		return tokens.ErrUnavailable
	case !isToken && !strings.HasPrefix(key, tokens.Volatile):
		if isRequest(key) && index != "" {
			s.mu.Lock()
			s.Indexes = append(s.Indexes, index)
			s.mu.Unlock()
		}
		return s.Store.Update(ctx, key, index, change)
	}
	isNew := false
	err := s.Store.Update(ctx, key, index, func(old tokens.Entry) (tokens.Entry, error) {
		isNew = old.Value == nil
		switch {
		case !isNew && (s.NoTakes.Load() && isToken || s.Unextended.Load() && !isToken):
			return old, tokens.ErrUnavailable
		case !isNew && isToken && s.Ended.Load():
			old = tokens.Entry{}
		}
		return change(old)
	})
	if err == nil && isNew && s.Saved != nil && isToken {
		s.Saved(key)
	}
	return err
}

// Get implements [tokens.Store].
func (s *Store) Get(ctx context.Context, key string) (tokens.Entry, error) {
	if s.Before != nil {
		s.Before("load")
	}
	if s.Fails.Load() || strings.HasPrefix(key, tokenKeys) && s.NoLoads.Add(-1) >= 0 {
		return tokens.Entry{}, tokens.ErrUnavailable
	}
	return s.Store.Get(ctx, key)
}

// Log is a log for tests to read.
type Log struct {
	mu      sync.Mutex
	records []slog.Record
}

// Enabled implements [slog.Handler].
func (l *Log) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (l *Log) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// WithAttrs implements [slog.Handler].
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements [slog.Handler].
func (l *Log) WithGroup(string) slog.Handler { return l }

// Take returns the lines since the last call: level, message, and the status if there is one.
func (l *Log) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := make([]string, len(l.records))
	for i, r := range l.records {
		lines[i] = r.Level.String() + " " + r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "status" {
				lines[i] += " " + strconv.FormatInt(a.Value.Int64(), 10)
			}
			return true
		})
	}
	l.records = nil
	return lines
}

// Meanwhile returns a body that calls do when half of it is read.
func Meanwhile(body string, do func()) io.ReadCloser {
	half := len(body) / 2
	return io.NopCloser(&meanwhile{strings.NewReader(body[:half]), strings.NewReader(body[half:]), do})
}

type meanwhile struct {
	first, second io.Reader
	between       func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	n, err := m.first.Read(p)
	if err != io.EOF {
		return n, err
	}
	if m.between != nil {
		m.between()
		m.between = nil
	}
	return m.second.Read(p)
}

// Endless is a body that never ends.
type Endless struct{}

// Read implements [io.Reader].
func (Endless) Read(p []byte) (int, error) {
	p[0] = 'x'
	return 1, nil
}
