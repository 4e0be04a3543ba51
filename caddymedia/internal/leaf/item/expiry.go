package item

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// ErrExpired means that an item has ended, although the storage may still have it. It is a kind of
// fs.ErrNotExist.
var ErrExpired = fmt.Errorf("the item has expired: %w", fs.ErrNotExist)

// Rest returns how long an item is still to be had, which is negative after its end. It returns
// false for an item without an end, such as one whose time the backend does not know.
func (a *Alias) Rest(info storagedrivers.Info, now time.Time) (rest time.Duration, ends bool) {
	if a.Expires == 0 || info.ModTime.IsZero() {
		return 0, false
	}
	return info.ModTime.Add(a.Expires).Sub(now), true
}

// HasExpired reports whether an item has ended.
func (a *Alias) HasExpired(info storagedrivers.Info, now time.Time) bool {
	rest, ends := a.Rest(info, now)
	return ends && rest <= 0
}

// StatPresent returns a stored item. The error is fs.ErrNotExist if there is none, [ErrExpired] if
// it has ended, or that of the storage.
func (a *Alias) StatPresent(ctx context.Context, filename string, now time.Time) (storagedrivers.Info, error) {
	info, err := a.Storage.Stat(ctx, a.Key(filename))
	if err == nil && a.HasExpired(info, now) {
		return storagedrivers.Info{}, ErrExpired
	}
	return info, err
}

// BoundAge returns a Cache-Control header by which caches ask again after most at the latest.
func BoundAge(cacheControl string, most time.Duration) string {
	var kept []string
	bounded, age := false, strconv.FormatInt(int64(most/time.Second), 10)
	for directive := range strings.SplitSeq(cacheControl, ",") {
		directive = strings.TrimSpace(directive)
		name, value, _ := strings.Cut(strings.ToLower(directive), "=")
		switch name {
		case "", "immutable", "stale-while-revalidate", "stale-if-error":
			continue
		case "no-cache", "no-store":
			bounded = true
		case "max-age", "s-maxage":
			seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
			if err != nil || seconds > int64(most/time.Second) {
				directive = name + "=" + age
			}
			bounded = bounded || name == "max-age"
		}
		kept = append(kept, directive)
	}
	if !bounded {
		kept = append(kept, "max-age="+age)
	}
	return strings.Join(kept, ", ")
}
