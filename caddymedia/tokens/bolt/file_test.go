package bolt

import (
	"bytes"
	"context"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
)

// TestLocked: while another store has the file open, all callers fail within the time of one
// attempt. The error names the lock. The store works as soon as the other one is closed.
func TestLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.db")
	holder, s := New(path, nil, nil), New(path, nil, nil)
	defer s.Close()
	key := putNew(t, holder, time.Now().Add(time.Hour))

	start := time.Now()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := s.Get(t.Context(), key)
			if !errors.Is(err, tokens.ErrUnavailable) || !strings.Contains(err.Error(), "another process") {
				t.Errorf("locked: got %v", err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a short context: got %v after %v", err, time.Since(start))
	}
	wg.Wait()
	if d := time.Since(start); d > 10*lockTimeout {
		t.Errorf("20 callers waited %v for the lock", d)
	}

	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), key); err != nil {
		t.Errorf("after the other closed: %v", err)
	}
}

// TestLockedByProcess is TestLocked with another process, which is killed without closing anything.
func TestLockedByProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.db")
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), lockHolder+"="+path)
	holder.Stderr = os.Stderr
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		t.Fatalf("the other process is not ready: %v", err)
	}
	s := New(path, nil, nil)
	defer s.Close()
	if err := s.Check(t.Context()); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("locked: got %v", err)
	}
	holder.Process.Kill()
	holder.Wait()
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("after the other died: %v", err)
	}
	if e, err := s.Get(t.Context(), "of the holder"); err != nil || e.Value == nil {
		t.Errorf("the entry of the other is lost: %v", err)
	}
}

// holdLock runs in the other process.
func holdLock(path string) {
	s := New(path, nil, nil)
	if err := s.Update(context.Background(), "of the holder", "", to(tokens.Entry{Value: []byte{}})); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("!")
	time.Sleep(time.Hour) // until it is killed; without cgo "select {}" is a deadlock
}

// TestUnusable: files that cannot be opened are reported as unavailable, with the path.
func TestUnusable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"text":  []byte("no database"),
		"noise": bytes.Repeat([]byte{0xa5}, 64<<10),
		"zeros": make([]byte, 64<<10),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		wantUnusable(t, path)
	}
	wantUnusable(t, dir)
	wantUnusable(t, filepath.Join(dir, "text", "tokens.db"))
}

func wantUnusable(t *testing.T, path string) {
	t.Helper()
	s := New(path, nil, nil)
	defer s.Close()
	err := s.Check(t.Context())
	if !errors.Is(err, tokens.ErrUnavailable) || !strings.Contains(err.Error(), path) {
		t.Errorf("%s: got %v, want ErrUnavailable with the path", path, err)
	}
}

// TestDamaged: with random pages damaged, the store returns errors of the contract, without
// blocking or ending the process. It works again once the file is replaced.
func TestDamaged(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	good := filepath.Join(t.TempDir(), "good.db")
	s := New(good, nil, nil)
	keys := make([]string, 0, 300)
	for range 300 {
		keys = append(keys, putNew(t, s, time.Now().Add(time.Hour)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for seed := range uint64(60) {
		if survive(t, content, damage(bytes.Clone(content), mathrand.New(mathrand.NewPCG(seed, 0))), keys) {
			dropped++
		}
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
	if dropped == 0 {
		t.Error("no damage made the store drop its file")
	}
}

// survive uses a store with bad content. If the store drops the bad file, it must work with good
// content. survive reports whether it did.
func survive(t *testing.T, good, bad []byte, keys []string) (dropped bool) {
	t.Helper()
	clock := new(tokentest.Clock)
	path := filepath.Join(t.TempDir(), "bad.db")
	replace(t, path, bad)
	s := New(path, nil, clock.Now)
	useAll(t, s, keys)
	s.mu.Lock()
	dropped = s.damage != nil
	s.mu.Unlock()
	if !dropped {
		_ = s.Close()
		return false
	}
	replace(t, path, good)
	clock.Advance(damagePause)
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("after the file was replaced: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return true
}

// TestShrunk: the file is truncated under the open store. Reading the missing pages is a fault, not
// an error.
func TestShrunk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.db")
	clock := new(tokentest.Clock)
	s := New(path, nil, clock.Now)
	defer s.Close()
	key := putNew(t, s, clock.Now().Add(time.Hour))
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Get(t.Context(), key); !errors.Is(err, tokens.ErrUnavailable) || !strings.Contains(err.Error(), "damaged") {
			t.Fatalf("got %v, want ErrUnavailable and a word about damage", err)
		}
	}
}

// damage replaces pages after the first two as disks do: by zeros, noise, or another page. (bbolt
// trusts every page with a valid header, so flipped bits are out of scope.)
func damage(content []byte, r *mathrand.Rand) []byte {
	const page = 4096
	anyPage := func() []byte {
		start := (2 + r.IntN(len(content)/page-2)) * page
		return content[start : start+page]
	}
	for range 1 + r.IntN(3) {
		switch lost := anyPage(); r.IntN(3) {
		case 0:
			clear(lost)
		case 1:
			copy(lost, anyPage())
		default:
			for n := range lost {
				lost[n] = byte(r.Uint32())
			}
		}
	}
	return content
}

func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	_ = os.Remove(path)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func useAll(t *testing.T, s *Store, keys []string) {
	t.Helper()
	want := func(err error) {
		if err != nil && !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("not an error of the contract: %v", err)
		}
	}
	for n, key := range keys {
		_, err := s.Get(t.Context(), key)
		want(err)
		if n%20 == 0 {
			want(s.Update(t.Context(), key, "a", to(tokens.Entry{})))
			want(s.Update(t.Context(), key, "a", to(tokens.Entry{Value: []byte{}, Expires: s.now().Add(time.Minute)})))
		}
	}
	_, err := s.DeleteIndex(t.Context(), "a")
	want(err)
}
