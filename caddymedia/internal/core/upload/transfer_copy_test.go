package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// metered is a driver that counts the bytes that are read and written.
type metered struct {
	*memory.Driver
	read, written atomic.Int64
	copied        atomic.Int64
	copy          func() error // nil: the driver copies
}

func (d *metered) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, counter{&d.read}), body}, info, nil
}

func (d *metered) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	stored := &d.written
	if opts.Source != nil {
		if stored = &d.copied; d.copy != nil {
			if err := d.copy(); err != nil {
				return storagedrivers.Info{}, err
			}
		}
	}
	info, err := d.Driver.Put(ctx, key, r, opts)
	stored.Add(info.Size)
	return info, err
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// TestTransferCopiesInBackend: the bytes of an item that stays in its backend are read only as far
// as checks need them, and are not written.
func TestTransferCopiesInBackend(t *testing.T) {
	t.Parallel()
	var (
		text       = strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
		png        = pngOf(red)
		unsupports = func() error { return fmt.Errorf("too large: %w", errors.ErrUnsupported) }
	)
	for _, c := range []struct {
		name                  string
		kind                  item.Kind
		from, to, content     string
		copy                  func() error
		read, written, copied int
	}{
		{"file", item.File, "a.txt", "b.txt", text, nil, 64 << 10, 0, 1 << 20},
		{"empty file", item.File, "a.txt", "b.txt", "", nil, 0, 0, 0},
		{"image", item.Image, "a.png", "b.png", png, nil, len(png), len(webpOf(red)), len(png)},
		{"file of a backend that cannot", item.File, "a.txt", "b.txt", text, unsupports, 64<<10 + 1<<20, 1 << 20, 0},
		{"image of a backend that cannot", item.Image, "a.png", "b.png", png, unsupports, len(png), len(png) + len(webpOf(red)), 0},
	} {
		for _, copies := range []bool{false, true} {
			for _, storages := range []int{1, 2} {
				t.Run(fmt.Sprint(c.name, copies, storages), func(t *testing.T) {
					t.Parallel()
					d := &metered{Driver: memory.New(), copy: c.copy}
					location := storagedrivers.Location{Backend: "memory"}
					here := closed(t, "here", d, storagedrivers.Options{Location: location})
					there := here
					if storages == 2 {
						there = closed(t, "there", d, storagedrivers.Options{Location: location, Close: func() error { return nil }})
					}
					from, to := newAlias(t, "from", here), newAlias(t, "to", there)
					if c.kind == item.Image {
						from, to = imageAlias(t, here), imageAlias(t, there)
						from.Name, from.Prefix, to.Name, to.Prefix = "from", "img/from", "to", "img/to"
					}
					from.MaxSize, to.MaxSize = 2<<20, 2<<20
					put(t, here, from.Key(c.from), c.content)
					d.written.Store(0)
					_, failures := newUploader(from, to).Transfer(t.Context(), Transfer{Request: Request{Kind: c.kind, Alias: "to"}, From: from, Filename: c.from, To: c.to, Copy: copies})
					if failures != nil {
						t.Fatal(failures)
					}
					if d.read.Load() != int64(c.read) || d.written.Load() != int64(c.written) || d.copied.Load() != int64(c.copied) {
						t.Errorf("read %d, wrote %d, copied %d, want %d, %d, %d",
							d.read.Load(), d.written.Load(), d.copied.Load(), c.read, c.written, c.copied)
					}
					want := map[string]string{to.Key(c.to): c.content}
					if copies {
						want[from.Key(c.from)] = c.content
					}
					if c.kind == item.Image {
						want[to.VariantKey(c.to)] = webpOf(red)
					}
					wantContents(t, here, want)
				})
			}
		}
	}
}

// TestTransferOfReplacedCopy: an item that is replaced right before it is copied is transferred
// again.
func TestTransferOfReplacedCopy(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{false, true} {
		var s *storagedrivers.Storage
		left := 2
		d := &metered{Driver: memory.New()}
		d.copy = func() error {
			if left--; left >= 0 {
				replace(t, s, "file/content/a.txt", fmt.Sprint("replacement ", left))
			}
			return nil
		}
		s = closed(t, "here", d, storagedrivers.Options{})
		put(t, s, "file/content/a.txt", "old")
		content := newAlias(t, "content", s)
		_, failures := newUploader(content).Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "content"}, From: content, Filename: "a.txt", To: "b.txt", Copy: copies})
		want := map[string]string{"file/content/b.txt": "replacement 0"}
		if copies {
			want["file/content/a.txt"] = "replacement 0"
		}
		if failures != nil {
			t.Error(failures)
		}
		wantContents(t, s, want)
	}
}

// uncopied is a driver of large objects that cannot copy them.
type uncopied struct{ large }

func (d uncopied) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	info.Size += d.more
	return body, info, err
}

func (d uncopied) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	if opts.Source != nil {
		return storagedrivers.Info{}, errors.ErrUnsupported
	}
	return d.Driver.Put(ctx, key, r, opts)
}

// TestTransferLargeUncopied: a large item is not transferred to another storage of its backend if
// that turns out not to copy it.
func TestTransferLargeUncopied(t *testing.T) {
	t.Parallel()
	d := uncopied{large{memory.New(), 1 << 30}}
	options := storagedrivers.Options{Location: storagedrivers.Location{Backend: "memory"}}
	here := closed(t, "here", d, options)
	options.Close = func() error { return nil }
	from, to := newAlias(t, "from", here), newAlias(t, "to", closed(t, "there", d, options))
	to.MaxSize = 2 << 30
	put(t, closed(t, "plain", d.Driver, options), from.Key("a.txt"), strings.Repeat("0123456789abcdef", 1<<13)) // 128 KiB
	_, failures := newUploader(from, to).Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "to"}, From: from, Filename: "a.txt", To: "b.txt"})
	wantFailure(t, failures, item.TooLarge, "a.txt", "caddy media copy")
}

// TestTransferReservesFirst: nothing is copied while too many uploads are under way.
func TestTransferReservesFirst(t *testing.T) {
	t.Parallel()
	copied := false
	s := onLocal(t, func(op, _ string) error {
		copied = copied || op == "copy"
		return nil
	})
	content := newAlias(t, "content", s)
	put(t, s, content.Key("a.txt"), "text")
	u := newUploader(content)
	u.Staging = NewStaging(0, 0)
	_, failures := u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "content"}, From: content, Filename: "a.txt", To: "b.txt"})
	if wantFailure(t, failures, item.Busy, "", "too many uploads"); copied {
		t.Error("it was copied")
	}
}
