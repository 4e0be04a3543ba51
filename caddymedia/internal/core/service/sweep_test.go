package service

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// requests counts the requests to a backend, by operation, and list requests by folder.
type requests struct {
	mu    sync.Mutex
	count map[string]int
	fail  error
}

func (r *requests) note(op, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if op == "list" {
		op += " " + strings.TrimPrefix(key, resumable.Folder)
	}
	r.count[op]++
	return r.fail
}

// take returns the counts since the last call.
func (r *requests) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.count
	r.count = map[string]int{}
	return count
}

// onRequests returns services that share a backend, as in several processes, and its requests. The
// second service is not started.
func onRequests(t *testing.T, off bool, expires time.Duration) (one, other *Service, r *requests) {
	t.Helper()
	r = &requests{count: map[string]int{}}
	driver := memory.New()
	driver.Fail = r.note
	services := make([]*Service, 2)
	for i := range services {
		parts := partsOf(t)
		parts.Accounts = []access.Account{{APIKey: uploader, PasswordHash: "x"}}
		parts.Resumable.Off, parts.Resumable.Expires = off, expires
		parts.Storages[0].Driver = driver
		parts.Storages[0].Options.Close = func() error { return nil }
		services[i] = start(t, parts)
	}
	return services[0], services[1], r
}

// TestIdleSweeps: a storage without unfinished uploads is hardly listed, and not at all if
// resumable uploads are off.
func TestIdleSweeps(t *testing.T) {
	t.Parallel()
	for off, want := range map[bool]map[string]int{
		false: {"check": 1440, "list /open/": 288, "list /data/": 24, "list /done/": 24},
		true:  {"check": 1440},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _, r := onRequests(t, off, 24*time.Hour)
			s.Start()
			synctest.Wait()
			first := map[string]int{"check": 1, "list /open/": 1, "list /data/": 1, "list /done/": 1}
			if got := r.take(); !maps.Equal(got, first) {
				t.Errorf("off %t, at the start: %v, want %v", off, got, first)
			}
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if got := r.take(); !maps.Equal(got, want) {
				t.Errorf("off %t, in a day: %v, want %v", off, got, want)
			}
		})
	}
}

// TestSweepsOfDeadNodes: an upload that expires is removed within a minute, whichever process has
// created it, and how soon it expires.
func TestSweepsOfDeadNodes(t *testing.T) {
	t.Parallel()
	for _, expires := range []time.Duration{time.Minute, 20 * time.Minute, 24 * time.Hour} {
		for _, dead := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s, other, r := onRequests(t, false, expires)
				s.Start()
				time.Sleep(7 * time.Minute)
				if !dead {
					other = s
				}
				storage := other.UploadStorage(item.File, "content")
				u, err := other.Uploads().Create(t.Context(), storage, resumable.Creation{
					Record: resumable.Record{Owner: uploader, Kind: "file", Alias: "content", Filename: "a.txt", Length: 4},
					Admit:  func(int64) error { return nil },
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(u.Expires()) + time.Minute)
				synctest.Wait()
				if left, err := s.uploads.HasOpen(t.Context(), storage); left || err != nil {
					t.Errorf("expires %s, dead %t: left %t, error %v", expires, dead, left, err)
				}
				time.Sleep(time.Hour)
				r.take()
				time.Sleep(10 * time.Minute)
				if got := r.take()["list /open/"]; got > int(10*time.Minute/min(idleInterval, expires))+1 {
					t.Errorf("expires %s, dead %t: %d list requests afterwards", expires, dead, got)
				}
			})
		}
	}
}

// TestUnreachableIsChecked: an unreachable storage is only checked. Its uploads are swept as soon
// as it is reachable.
func TestUnreachableIsChecked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, r := onRequests(t, false, 24*time.Hour)
		r.fail = errors.Join(storagedrivers.ErrUnavailable, errors.New("down"))
		s.Start()
		time.Sleep(time.Hour)
		synctest.Wait()
		got := r.take()
		if checks := got["check"]; len(got) != 1 || checks > 3*int(time.Hour/retryInterval)+3 {
			t.Errorf("requests %v", got)
		}
		r.mu.Lock()
		r.fail = nil
		r.mu.Unlock()
		time.Sleep(retryInterval)
		synctest.Wait()
		if got := r.take(); got["list /open/"] != 1 {
			t.Errorf("requests %v", got)
		}
	})
}

// TestClosedBeforeStart: a service that is closed does not check its storages, also if a caller has
// begun to start it before.
func TestClosedBeforeStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, r := onRequests(t, false, 24*time.Hour)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Start()
		for _, storage := range s.storages {
			s.watch(s.health.ctx, storage.Name(), storage)
			s.sweepUploads(s.health.ctx, storage)
		}
		if got := r.take(); len(got) > 0 {
			t.Errorf("requests %v", got)
		}
	})
}
