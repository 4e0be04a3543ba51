package access_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// TestPresigned: an address of which ten items were refused has none left, until it expires,
// whatever else is ended. Another one has.
func TestPresigned(t *testing.T) {
	t.Parallel()
	f, shop := newFixture(t), account("shop", "secret")
	i := f.issuer(shop)
	one, other := strings.Repeat("1", 64), strings.Repeat("2", 64)
	expires := f.clock.Now().Add(time.Hour)
	left := func(signature string) int {
		t.Helper()
		ticket := access.PresignedTicket(signature, expires)
		if err := i.LoadPresigned(t.Context(), ticket); err != nil {
			t.Fatal(err)
		}
		return ticket.Left()
	}
	for _, c := range []struct{ more, left int }{{0, 1}, {9, 1}, {1, 0}, {1, 0}} {
		for range c.more {
			if err := i.Refuse(t.Context(), access.PresignedTicket(one, expires), 1); err != nil {
				t.Fatal(err)
			}
		}
		if got := left(one); got != c.left {
			t.Errorf("%d more refused: %d are left, want %d", c.more, got, c.left)
		}
	}
	if n, err := i.Revoke(t.Context(), shop.APIKey); n != 0 || err != nil {
		t.Errorf("%d tokens were ended: %v", n, err)
	}
	if got := left(one); got != 0 {
		t.Errorf("%d are left after the end of all tokens", got)
	}
	if got := left(other); got != 1 {
		t.Errorf("another address has %d left", got)
	}
	f.clock.Advance(2 * time.Hour)
	if got := left(one); got != 1 {
		t.Error("an expired address is remembered")
	}
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	ticket := access.PresignedTicket(one, expires)
	for name, err := range map[string]error{"LoadPresigned": i.LoadPresigned(t.Context(), ticket), "Refuse": i.Refuse(t.Context(), ticket, 1)} {
		if !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("%s without a store: %v", name, err)
		}
	}
}
