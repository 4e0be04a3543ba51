package tokens

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

const (
	// maxRequests and maxAccount are how many answers of an account are kept, and how many bytes of
	// them. Then the oldest are forgotten.
	maxRequests = 10_000
	maxAccount  = 16 << 20
	// segments is how many parts they are forgotten in.
	segments = 64
	// blockRequests and blockBytes are reserved at once.
	blockRequests = 8
	blockBytes    = 32 << 10
	// sharers is the number of shares of an account. The owners of one share forget each other's
	// answers first.
	sharers = 16
)

// segment is a part of the kept answers of an account, with an index of its own. All of it is
// forgotten at once.
type segment struct {
	Number   int       `json:"number"`
	Share    int       `json:"share"`
	Requests int       `json:"requests"`
	Bytes    int       `json:"bytes"`
	Last     time.Time `json:"last"` // reservation
}

// keptSegments are the segments of an account, the oldest first.
type keptSegments struct {
	Next     int       `json:"next"`
	Segments []segment `json:"segments"`
}

// blocks are the reservations of a process, by account and share.
type blocks struct {
	mu sync.Mutex
	of map[string]*block
}

// block is a part of a segment that this process fills.
type block struct {
	index           string
	requests, bytes int // left
}

// keptIn returns the index for the answer to a request, of size bytes, and forgets older ones if there
// are too many. Room is reserved in blocks, so most answers cost no update of their own.
func (i *Issuer) keptIn(ctx context.Context, r Request, size int) (index string, err error) {
	share := 0
	if r.Owner != "" {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(r.Owner))
		share = 1 + int(hash.Sum32()%(sharers-1))
	}
	account := "requests/" + hashed(r.Account)
	name := fmt.Sprint(account, "/", share)
	i.kept.mu.Lock()
	b := i.kept.of[name]
	if b != nil && b.requests > 0 && b.bytes >= size {
		defer i.kept.mu.Unlock()
		b.requests--
		b.bytes -= size
		return b.index, nil
	}
	i.kept.mu.Unlock()
	bytes := max(size, blockBytes)
	number, forgotten, err := i.reserve(ctx, account, share, bytes)
	if err != nil {
		return "", err
	}
	for _, n := range forgotten {
		if _, err := i.store.DeleteIndex(ctx, fmt.Sprint(account, "/", n)); err != nil {
			return "", err
		}
	}
	index = fmt.Sprint(account, "/", number)
	i.kept.mu.Lock()
	defer i.kept.mu.Unlock()
	if i.kept.of == nil {
		i.kept.of = map[string]*block{}
	}
	i.kept.of[name] = &block{index, blockRequests - 1, bytes - size}
	return index, nil
}

// reserve reserves room of the account for a block. It returns the number of its segment, and those of
// the segments to forget.
func (i *Issuer) reserve(ctx context.Context, account string, share, bytes int) (number int, forgotten []int, err error) {
	err = i.store.Update(ctx, account, "", func(old Entry) (Entry, error) {
		var kept keptSegments
		if old.Value != nil {
			if err := json.Unmarshal(old.Value, &kept); err != nil {
				return old, err
			}
		}
		now := i.now().UTC()
		number = kept.reserve(share, bytes, now)
		forgotten = kept.forget(number)
		return entryOf(kept, now.Add(RequestLifetime))
	})
	return number, forgotten, err
}

// reserve adds a block to the last segment of a share, or to a new one.
func (k *keptSegments) reserve(share, bytes int, now time.Time) (number int) {
	k.Segments = slices.DeleteFunc(k.Segments, func(s segment) bool { return now.Sub(s.Last) > RequestLifetime })
	for n := range slices.Backward(k.Segments) {
		s := &k.Segments[n]
		if s.Share != share {
			continue
		}
		if s.Requests+blockRequests > maxRequests/segments || s.Bytes+bytes > maxAccount/segments {
			break
		}
		s.Requests += blockRequests
		s.Bytes += bytes
		s.Last = now
		return s.Number
	}
	k.Next++
	k.Segments = append(k.Segments, segment{k.Next, share, blockRequests, bytes, now})
	return k.Next
}

// forget removes segments, but not the one of number, while there is too much: the oldest of the
// largest share.
func (k *keptSegments) forget(number int) (forgotten []int) {
	for {
		var requests, bytes int
		var sizes [sharers]int
		for _, s := range k.Segments {
			requests += s.Requests
			bytes += s.Bytes
			sizes[s.Share] += s.Requests*(maxAccount/maxRequests) + s.Bytes
		}
		if requests <= maxRequests && bytes <= maxAccount {
			return forgotten
		}
		largest := slices.Index(sizes[:], slices.Max(sizes[:]))
		n := slices.IndexFunc(k.Segments, func(s segment) bool { return s.Share == largest && s.Number != number })
		if n < 0 {
			return forgotten
		}
		forgotten = append(forgotten, k.Segments[n].Number)
		k.Segments = slices.Delete(k.Segments, n, n+1)
	}
}
