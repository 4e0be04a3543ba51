package resumable

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestList: the pages have all unfinished uploads, and leave out one whose record is damaged.
func TestList(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		names := []string{"one", "two", "one", "one"}
		want := make([]string, len(names))
		for i, name := range names {
			want[i] = s.create(t, Record{Owner: "http " + name, Account: name, Length: 5}).Name()
		}
		if err := s.create(t, Record{Owner: owner, Length: 0}).record(t.Context(), Outcome{}); err != nil {
			t.Fatal(err)
		}
		damaged := recordKey(owner, newID(s.Now(), &Record{}, 0, "default"))
		if err := putBytes(t.Context(), s.Storages[0], damaged, []byte("{")); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		for _, limit := range []int{1, 2, 100} {
			var got []string
			for cursor, first := "", true; first || cursor != ""; first = false {
				uploads, next, err := s.List(t.Context(), s.Storages[0], cursor, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range uploads {
					got = append(got, u.Name())
				}
				cursor = next
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("limit %d: %v, want %v", limit, got, want)
			}
		}
	})
}

// TestNamed: an upload is found by its name as long as it is unfinished.
func TestNamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3, Account: "site"})
		if err := u.Append(t.Context(), body(0, strings.NewReader("12"))); err != nil {
			t.Fatal(err)
		}
		named := func(name string) (*Upload, error) { return s.Named(t.Context(), s.Storages[0], name) }
		got, err := named(u.Name())
		if err != nil || got.ID != u.ID || got.Account != "site" || got.Offset() != 2 {
			t.Fatalf("%+v, error %v", got, err)
		}
		if err := u.record(t.Context(), Outcome{Stored: "a"}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{u.Name(), u.ID, "", ".", "x." + u.ID, "../done/" + u.Name(), strings.ToUpper(u.Name())} {
			if _, err := named(name); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
}
