package tokentest

import (
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// The accounts of these tests have unique names, because the data may be shared.

// testDeleteAccount uses names that a faulty store may confuse.
func testDeleteAccount(t *testing.T, s Subject) {
	name := rand.Text()
	left := map[tokens.ID]tokens.Record{}
	accounts := []string{
		name, name + "1", name[:len(name)-1], "x" + name, name + "*", "*" + name, "?" + name[1:], "[A-Z2-7]" + name[1:],
		name + `\`, name + `"`, name + `","account":"` + name, name + " ", name + "\n", name + "\x00", name + "%",
		"{" + name + "}", name + ":" + name, name + "ě", name + "Ě", name + "e\u030c", name + "<&>", name + "\u2028",
	}
	for _, account := range accounts {
		for range 3 {
			id, rec := newID(), s.record(account)
			save(t, s.Store, id, rec)
			left[id] = rec
		}
	}
	wantDeleted(t, s.Store, rand.Text(), 0)
	for _, account := range accounts {
		wantDeleted(t, s.Store, account, 3)
		wantDeleted(t, s.Store, account, 0)
		for id, rec := range maps.Clone(left) {
			if rec.Account == account {
				wantUnknown(t, s.Store, id)
				delete(left, id)
				continue
			}
			wantRecord(t, s.Store, id, rec)
		}
	}
	id, rec := newID(), s.record(name)
	save(t, s.Store, id, rec) // the account may go on
	wantRecord(t, s.Store, id, rec)
}

func testDeleteAccountExpired(t *testing.T, s Subject) {
	account, expired, id := rand.Text(), newID(), newID()
	save(t, s.Store, expired, s.shortRecord(account))
	save(t, s.Store, id, s.record(account))
	s.Advance(soon)
	wantDeleted(t, s.Store, account, 1)
	wantUnknown(t, s.Store, id)
	wantUnknown(t, s.Store, expired)
}

// testDeleteAccountReplaced: a record is saved again for another account.
func testDeleteAccountReplaced(t *testing.T, s Subject) {
	account, id, rec := rand.Text(), newID(), s.record(rand.Text())
	save(t, s.Store, id, s.record(account))
	save(t, s.Store, id, rec)
	wantDeleted(t, s.Store, account, 0)
	wantRecord(t, s.Store, id, rec)
	wantDeleted(t, s.Store, rec.Account, 1)
	wantUnknown(t, s.Store, id)
}

// testDeleteAccountMany uses more records than a store examines at once.
func testDeleteAccountMany(t *testing.T, s Subject) {
	const each = 1200
	account, other := rand.Text(), rand.Text()
	ids := map[string][]tokens.ID{account: newIDs(each), other: newIDs(each)}
	var wg sync.WaitGroup
	for name, own := range ids {
		for _, part := range [][]tokens.ID{own[:each/4], own[each/4 : each/2], own[each/2 : each/4*3], own[each/4*3:]} {
			wg.Go(func() {
				for _, id := range part {
					if err := s.Store.Save(t.Context(), id, s.record(name)); err != nil {
						t.Errorf("Save: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	wantDeleted(t, s.Store, account, each)
	wantDeleted(t, s.Store, account, 0)
	for _, id := range ids[account] {
		wantUnknown(t, s.Store, id)
	}
	wantDeleted(t, s.Store, other, each)
}

// testDeleteAccountConcurrent deletes while the same account and another one are busy.
func testDeleteAccountConcurrent(t *testing.T, s Subject) {
	account, other := rand.Text(), s.record(rand.Text())
	before := newIDs(50)
	for _, id := range before {
		save(t, s.Store, id, s.record(account))
	}
	var wg sync.WaitGroup
	defer wg.Wait() // also when the test ends early
	for range 8 {
		wg.Go(func() {
			for range 20 {
				id := newID()
				err := s.Store.Save(t.Context(), id, other)
				_, errLoad := s.Store.Load(t.Context(), id)
				errOwn := s.Store.Save(t.Context(), newID(), s.record(account)) // may go or stay
				if err := errors.Join(err, errLoad, errOwn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	total := deleteAccount(t, s.Store, account)
	for _, id := range before {
		wantUnknown(t, s.Store, id)
	}
	wg.Wait()
	total += deleteAccount(t, s.Store, account)
	if want := len(before) + 8*20; total != want {
		t.Errorf("DeleteAccount: deleted %d in all, want %d", total, want)
	}
	wantDeleted(t, s.Store, other.Account, 8*20)
}

func newIDs(n int) []tokens.ID {
	ids := make([]tokens.ID, n)
	for i := range ids {
		ids[i] = newID()
	}
	return ids
}

func deleteAccount(t *testing.T, s tokens.Store, account string) int {
	t.Helper()
	n, err := s.DeleteAccount(t.Context(), account)
	if err != nil {
		t.Fatalf("DeleteAccount(%q): %v", account, err)
	}
	return n
}

func wantDeleted(t *testing.T, s tokens.Store, account string, want int) {
	t.Helper()
	if n := deleteAccount(t, s, account); n != want {
		t.Fatalf("DeleteAccount(%q): deleted %d, want %d", account, n, want)
	}
}
