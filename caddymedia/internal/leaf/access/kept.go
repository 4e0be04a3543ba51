package access

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

const (
	// maxRequests and maxAccount are how many answers of an account are kept, and how many bytes of
	// them. Then the oldest are forgotten.
	maxRequests = 10_000
	maxAccount  = 16 << 20
	// segments is how many parts they are forgotten in. A part is of whole blocks, so that all parts
	// together have maxRequests.
	segments = 50
	// blockRequests and blockBytes are reserved at once, the bytes at least.
	blockRequests = 8
	blockBytes    = blockRequests * (maxAccount / maxRequests)
	// blockTime is how long a block is used, because its segment may be forgotten.
	blockTime = time.Hour
	// shares is the number of shares of an account: its own, and those of its users and tickets.
	shares = 16
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

// blocks are the reservations of a process, by account and share: several if requests reserve at
// the same time.
type blocks struct {
	mu sync.Mutex
	of map[string][]block
}

// take returns the segment of a block with room for an answer of size bytes, and takes that room.
// Without one it removes a block, which is returned as unused.
func (b *blocks) take(name string, size int, now time.Time) (segment int, unused block, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.of[name]
	for n := range all {
		if one := &all[n]; one.requests > 0 && one.bytes >= size && now.Before(one.until) {
			one.requests--
			one.bytes -= size
			return one.segment, block{}, true
		}
	}
	switch len(all) {
	case 0:
		return 0, block{}, false
	case 1:
		delete(b.of, name)
	default:
		b.of[name] = all[1:]
	}
	return 0, all[0], false
}

// add adds a block of which an answer of size bytes has taken its room.
func (b *blocks) add(name string, one block, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[string][]block{}
	}
	one.requests--
	one.bytes -= size
	b.of[name] = append(b.of[name], one)
}

// block is a part of a segment that this process fills.
type block struct {
	segment         int
	requests, bytes int // left
	until           time.Time
}

// keptIn returns the index for the answer to a request, of size bytes, and forgets older ones if
// there are too many. Room is reserved in blocks, so most answers cost no update of their own.
func (i *Issuer) keptIn(ctx context.Context, r Request, size int) (index string, err error) {
	account, share := requestsOf(r.Account), shareOf(r.Owner)
	name := fmt.Sprint(account, "/", share)
	segment, unused, ok := i.kept.take(name, size, i.now())
	if ok {
		return segmentOf(account, segment), nil
	}
	b, err := i.reserve(ctx, account, share, unused, size)
	if err != nil {
		return "", err
	}
	i.kept.add(name, b, size)
	return segmentOf(account, b.segment), nil
}

// requestsOf is the key of the segments of an account, and segmentOf the index of one of them.
func requestsOf(apiKey string) string             { return "requests/" + hashed(apiKey) }
func segmentOf(account string, number int) string { return fmt.Sprint(account, "/", number) }

// shareOf returns the share of an owner; the account itself has one of its own.
func shareOf(owner string) int {
	if owner == "" {
		return 0
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(owner))
	return 1 + int(hash.Sum32()%(shares-1))
}

// reserve reserves a block for an answer of size bytes in place of unused, and forgets segments if
// there is too much.
func (i *Issuer) reserve(ctx context.Context, account string, share int, unused block, size int) (block, error) {
	var b block
	var forgotten []int
	err := i.store.Update(ctx, account, "", func(old tokens.Entry) (tokens.Entry, error) {
		var kept keptSegments
		if old.Value != nil {
			if err := json.Unmarshal(old.Value, &kept); err != nil {
				return old, err
			}
		}
		now := i.now().UTC()
		b = block{requests: blockRequests, bytes: max(size, blockBytes), until: now.Add(blockTime)}
		b.segment = kept.reserve(share, unused, b, now)
		forgotten = kept.forget(b.segment)
		return entryOf(kept, now.Add(RequestLifetime))
	})
	if err != nil {
		return block{}, err // the update may still run, so its results must not be read
	}
	return b, i.forget(ctx, account, forgotten)
}

// forget forgets the answers of segments.
func (i *Issuer) forget(ctx context.Context, account string, numbers []int) error {
	for _, n := range numbers {
		if _, err := i.store.DeleteIndex(ctx, segmentOf(account, n)); err != nil {
			return err
		}
	}
	return nil
}

// forgetAnswers forgets all answers of an account.
func (i *Issuer) forgetAnswers(ctx context.Context, apiKey string) error {
	account := requestsOf(apiKey)
	var kept keptSegments
	if _, err := i.load(ctx, account, &kept); err != nil {
		return err
	}
	numbers := make([]int, len(kept.Segments))
	for n, s := range kept.Segments {
		numbers[n] = s.Number
	}
	return i.forget(ctx, account, numbers)
}

// reserve adds b to the last segment of a share, in place of unused, or to a new one. It returns
// the number of the segment.
func (k *keptSegments) reserve(share int, unused, b block, now time.Time) (number int) {
	k.Segments = slices.DeleteFunc(k.Segments, func(s segment) bool { return now.Sub(s.Last) > RequestLifetime })
	for n := range slices.Backward(k.Segments) {
		s := &k.Segments[n]
		if s.Share != share {
			continue
		}
		if s.Number == unused.segment {
			s.Requests -= unused.requests
			s.Bytes -= unused.bytes
		}
		if s.Requests+b.requests > maxRequests/segments || s.Bytes+b.bytes > maxAccount/segments {
			break
		}
		s.Requests += b.requests
		s.Bytes += b.bytes
		s.Last = now
		return s.Number
	}
	k.Next++
	k.Segments = append(k.Segments, segment{k.Next, share, b.requests, b.bytes, now})
	return k.Next
}

// forget removes segments, but not the one of number, while there is too much: the oldest of the
// largest share.
func (k *keptSegments) forget(number int) (forgotten []int) {
	for {
		var requests, bytes int
		var sizes [shares]int
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
