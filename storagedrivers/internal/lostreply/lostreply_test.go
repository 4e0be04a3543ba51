package lostreply

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// service is a service that holds one object.
type service struct {
	info     storagedrivers.Info
	id       string // empty: no object
	failures int    // of looks, before they succeed
	looks    int
}

func (s *service) look(context.Context) (storagedrivers.Info, string, error) {
	s.looks++
	if s.looks <= s.failures {
		return storagedrivers.Info{}, "", storagedrivers.ErrUnavailable
	}
	if s.id == "" {
		return storagedrivers.Info{}, "", fs.ErrNotExist
	}
	return s.info, s.id, nil
}

var errRefused = errors.New("refused")

func (s *service) upload(mode storagedrivers.Mode) *Upload {
	opts := storagedrivers.PutOptions{Mode: mode, ID: "ours"}
	return New(opts, 30*time.Second, s.look, func(err error) bool { return !errors.Is(err, errRefused) })
}

func TestCommit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	stored := storagedrivers.Info{Key: "key", Size: 7, ETag: `"1"`, ModTime: now}
	sent := storagedrivers.Info{Key: "key", Size: 7, ETag: `"1"`}
	lost := io.ErrUnexpectedEOF
	for name, tt := range map[string]struct {
		service service
		mode    storagedrivers.Mode
		sent    storagedrivers.Info
		err     error
		want    storagedrivers.Info
		wantErr error
		looks   int
	}{
		"answered":                 {sent: stored, want: stored},
		"without time":             {service: service{info: stored, id: "ours"}, sent: sent, want: stored, looks: 1},
		"without time and ID":      {service: service{info: stored, id: "lost"}, sent: sent, want: stored, looks: 1},
		"replaced":                 {service: service{info: storagedrivers.Info{ETag: `"2"`}, id: "theirs"}, sent: sent, want: sent, looks: 1},
		"deleted":                  {sent: sent, want: sent, looks: 1},
		"refused":                  {err: errRefused, wantErr: errRefused},
		"lost answer":              {service: service{info: stored, id: "ours"}, err: lost, want: stored, looks: 1},
		"lost answer, look fails":  {service: service{info: stored, id: "ours", failures: 2}, err: lost, want: stored, looks: 3},
		"lost answer, looks fail":  {service: service{info: stored, id: "ours", failures: 9}, err: lost, wantErr: lost, looks: 3},
		"lost answer, overwritten": {service: service{info: stored, id: "theirs"}, mode: storagedrivers.Overwrite, err: lost, wantErr: lost, looks: 1},
		"lost request":             {err: lost, wantErr: lost, looks: 1},
		"lost request, taken":      {service: service{info: stored, id: "theirs"}, err: lost, wantErr: fs.ErrExist, looks: 1},
		"silent":                   {err: os.ErrDeadlineExceeded, wantErr: os.ErrDeadlineExceeded, looks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := tt.service
				got, err := s.upload(tt.mode).Commit(t.Context(), func(context.Context) (storagedrivers.Info, error) {
					return tt.sent, tt.err
				})
				if got != tt.want || !errors.Is(err, tt.wantErr) || errors.Is(err, storagedrivers.ErrUnavailable) {
					t.Errorf("got %+v, %v, want %+v, %v", got, err, tt.want, tt.wantErr)
				}
				test.Equal(t, s.looks, tt.looks, "looked", "times")
			})
		})
	}
}

// TestCommitOfCallerWhoLeaves: the caller cancels during the request.
func TestCommitOfCallerWhoLeaves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		id    string // of the object
		takes time.Duration
		want  error
	}{
		"answered in time": {"", time.Second, nil},
		"stored":           {"ours", time.Minute, nil},
		"not stored":       {"", time.Minute, context.Canceled},
		"taken":            {"theirs", time.Minute, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &service{id: tt.id}
				ctx, leave := context.WithCancel(t.Context())
				_, err := s.upload(storagedrivers.CreateOnly).Commit(ctx, func(longer context.Context) (storagedrivers.Info, error) {
					leave()
					select {
					case <-time.After(tt.takes):
						return storagedrivers.Info{ModTime: time.Now()}, nil
					case <-longer.Done():
						return storagedrivers.Info{}, longer.Err()
					}
				})
				if !errors.Is(err, tt.want) || errors.Is(err, fs.ErrExist) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				_, err = s.upload(storagedrivers.CreateOnly).Commit(ctx, func(context.Context) (storagedrivers.Info, error) {
					t.Error("sent for a caller who has left")
					return storagedrivers.Info{}, nil
				})
				test.Is(t, err, context.Canceled)
			})
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]error{"ours": nil, "theirs": fs.ErrExist, "": fs.ErrNotExist} {
		s := &service{info: storagedrivers.Info{Key: "key"}, id: id}
		info, err := s.upload(storagedrivers.CreateOnly).Find(t.Context())
		test.Is(t, err, want, id)
		test.Equal(t, info.Key == "key", want == nil, id, "found", info)
	}
	if a, b := New(storagedrivers.PutOptions{}, 0, nil, nil), New(storagedrivers.PutOptions{}, 0, nil, nil); a.ID == "" || a.ID == b.ID {
		t.Errorf("uploads called %q and %q", a.ID, b.ID)
	}
}

func TestOutlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		longer, cancel := Outlive(ctx, time.Second)
		defer cancel()
		time.Sleep(time.Minute)
		if longer.Err() != nil {
			t.Error("it ends before its caller has given up")
		}
		leave()
		time.Sleep(999 * time.Millisecond)
		if longer.Err() != nil {
			t.Error("it ends with its caller")
		}
		time.Sleep(2 * time.Millisecond)
		test.Is(t, longer.Err(), context.Canceled, "it goes on")

		early, cancel := Outlive(t.Context(), time.Second)
		cancel()
		if early.Err() == nil {
			t.Error("it goes on after it was cancelled")
		}
	})
}

func TestAfterwards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over, leave := context.WithCancel(t.Context())
		leave()
		for _, tt := range []struct {
			timeout time.Duration
			failed  error
			want    time.Duration
		}{
			{time.Second, io.EOF, time.Second},
			{time.Minute, io.EOF, 10 * time.Second},
			{time.Minute, os.ErrDeadlineExceeded, time.Minute / 8},
		} {
			ctx, cancel := Afterwards(over, tt.timeout, tt.failed)
			defer cancel()
			end, _ := ctx.Deadline()
			if ctx.Err() != nil || time.Until(end) != tt.want {
				t.Errorf("%v after %v: %v left, want %v", tt.timeout, tt.failed, time.Until(end), tt.want)
			}
		}
	})
}
