package service

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// expiring is an alias with items of an hour, and some that are ten minutes younger, in a service
// whose clock the test sets.
type expiringAlias struct {
	*Service
	alias    *item.Alias
	driver   *memory.Driver
	stored   time.Time // of the older items
	listings int
}

func newExpiring(t *testing.T) *expiringAlias {
	t.Helper()
	s, driver := listed(t)
	e := &expiringAlias{Service: s, driver: driver, stored: time.Now().Add(-time.Hour)}
	e.alias, _ = s.Alias(item.Image, "webp")
	e.alias.Expires = time.Hour
	for key, age := range map[string]time.Duration{
		"a/old.jpg": 0, "a/old.jpg.webp": 0, "old.jpg": 0, "@uploads/old.jpg": 0, "a/new.jpg": 10 * time.Minute,
	} {
		driver.Now = func() time.Time { return e.stored.Add(age) }
		if _, err := driver.Put(t.Context(), e.alias.Key(key), strings.NewReader(key), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	driver.Fail = func(op, prefix string) error {
		if op == "list" && prefix == e.alias.Key("") {
			e.listings++
		}
		return nil
	}
	return e
}

// at sets the clock of the service.
func (e *expiringAlias) at(age time.Duration) { e.now = func() time.Time { return e.stored.Add(age) } }

// TestSweepExpired: what has expired is removed with its variant, into the trash where there is
// one, and nothing else. Until the next item expires, the storage is not asked.
func TestSweepExpired(t *testing.T) {
	t.Parallel()
	e := newExpiring(t)
	e.alias.Trash = time.Hour
	sweep := e.expiring()
	for _, tt := range []struct {
		age      time.Duration
		listings int
		left     string
		trash    int
	}{
		{0, 1, "@uploads/old.jpg a/new.jpg a/old.jpg a/old.jpg.webp old.jpg", 0},
		{time.Hour - 1, 0, "@uploads/old.jpg a/new.jpg a/old.jpg a/old.jpg.webp old.jpg", 0},
		{time.Hour, 1, "@uploads/old.jpg a/new.jpg", 2},
		{time.Hour + 9*time.Minute, 0, "@uploads/old.jpg a/new.jpg", 2},
		{time.Hour + 10*time.Minute, 1, "@uploads/old.jpg", 3},
		{2*time.Hour + 9*time.Minute, 0, "@uploads/old.jpg", 3},
		{2*time.Hour + 10*time.Minute, 1, "@uploads/old.jpg", 3},
	} {
		e.at(tt.age)
		e.listings = 0
		if err := sweep(t.Context(), e.alias); err != nil {
			t.Fatal(err)
		}
		if e.listings != tt.listings {
			t.Errorf("after %v: %d listings, want %d", tt.age, e.listings, tt.listings)
		}
		var left []string
		trash := 0
		for info, err := range e.alias.Storage.All(t.Context(), "") {
			key := info.Key
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.alias.KeptAt(key); ok {
				trash++
			} else if strings.HasPrefix(key, e.alias.Key("")) {
				left = append(left, e.alias.Filename(key))
			}
		}
		if slices.Sort(left); strings.Join(left, " ") != tt.left || trash != tt.trash {
			t.Errorf("after %v: left are %q, and %d in the trash, want %q and %d", tt.age, left, trash, tt.left, tt.trash)
		}
	}
}

// TestSweepExpiredNew: an item that comes after a sweep is found when it expires, within an hour.
func TestSweepExpiredNew(t *testing.T) {
	t.Parallel()
	for expires, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 90 * 24 * time.Hour: maxExpiryWait} {
		e := newExpiring(t)
		e.alias.Expires = expires
		e.at(200 * 24 * time.Hour) // all has expired
		next, err := e.SweepExpired(t.Context(), e.alias)
		if err != nil || next.Sub(e.now()) != want {
			t.Errorf("expires %v: the next sweep is after %v, want %v, error %v", expires, next.Sub(e.now()), want, err)
		}
	}
}

// TestSweepExpiredGoesOn: an item that cannot be removed does not keep the rest, and is tried
// again.
func TestSweepExpiredGoesOn(t *testing.T) {
	t.Parallel()
	e := newExpiring(t)
	stuck := e.alias.Key("a/old.jpg")
	e.driver.Fail = func(op, key string) error {
		if op == "delete" && key == stuck {
			return fs.ErrPermission
		}
		return nil
	}
	e.at(time.Hour)
	next, err := e.SweepExpired(t.Context(), e.alias)
	if err == nil || !next.IsZero() {
		t.Errorf("next at %v, error %v", next, err)
	}
	if _, err := e.driver.Stat(t.Context(), e.alias.Key("old.jpg")); err == nil {
		t.Error("the other item is left")
	}
}

// TestExpireReplaced: an item that was replaced since it was listed stays.
func TestExpireReplaced(t *testing.T) {
	t.Parallel()
	e := newExpiring(t)
	e.at(time.Hour)
	e.driver.Now = e.now
	if _, err := e.driver.Put(t.Context(), e.alias.Key("old.jpg"), strings.NewReader("new"), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}); err != nil {
		t.Fatal(err)
	}
	for _, filename := range []string{"old.jpg", "none.jpg"} {
		if err := e.expire(t.Context(), e.alias, filename); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.driver.Stat(t.Context(), e.alias.Key("old.jpg")); err != nil {
		t.Error(err)
	}
}

// TestListExpired: items that have expired are in no list, in any order.
func TestListExpired(t *testing.T) {
	t.Parallel()
	e := newExpiring(t)
	e.at(time.Hour)
	for _, order := range []Order{ByName, ByModified} {
		names, _ := e.pages(t, e.query(t, func(q *ItemQuery) { q.Order, q.Recursive = order, true }))
		if !slices.Equal(names, []string{"a/new.jpg"}) {
			t.Errorf("%v: listed are %q", order, names)
		}
	}
}
