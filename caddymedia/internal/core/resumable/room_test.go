package resumable

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/memory"
)

// mayCreate creates an upload, and returns false if there are too many.
func (s *Store) mayCreate(t *testing.T, c Creation) bool {
	t.Helper()
	c.Owner, c.Kind, c.Admit = owner, "file", admit
	_, err := s.Create(t.Context(), s.Storages[0], c)
	if err != nil && !errors.Is(err, ErrTooMany) {
		t.Fatal(err)
	}
	return err == nil
}

// TestVisitors: visitors who create as many uploads as they can, each with ten tickets of one file,
// leave room for the next visitor and for the account's own tokens.
func TestVisitors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		maxBytes int64
		upload   Creation
		want     []int
	}{
		{"number", 1 << 40, Creation{Record: Record{Length: 1}}, []int{30, 20, 13, 9, 6, 4}},
		{"bytes", 1000, Creation{Record: Record{Length: 10}}, []int{30, 20, 13, 9, 6, 4}},
		{"bytes of unknown length", 1000, Creation{Record: Record{Length: Unknown}, Limit: 10}, []int{30, 20, 13, 9, 6, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := storeOn(t, memory.New())
			s.MaxOpen, s.MaxBytes = 100, c.maxBytes
			c.upload.Files = 1
			all := 0
			for visitor, want := range c.want {
				created := 0
				for ticket := range 10 {
					c.upload.Client, c.upload.Ticket = fmt.Sprintf("192.0.%d.1", visitor), fmt.Sprint(visitor, ticket)
					ofTicket := 0
					for s.mayCreate(t, c.upload) {
						ofTicket++
					}
					if created += ofTicket; ofTicket > 9 {
						t.Errorf("%d uploads of one ticket", ofTicket)
					}
				}
				if all += created; created != want {
					t.Errorf("visitor %d: %d uploads, want %d", visitor, created, want)
				}
			}
			c.upload.Client, c.upload.Ticket = "2001:db8::1", "honest"
			if !s.mayCreate(t, c.upload) {
				t.Error("the next visitor is shut out")
			}
			c.upload.Client, c.upload.Ticket = "192.0.0.1", ""
			for all++; s.mayCreate(t, c.upload); all++ {
			}
			if all != 100 {
				t.Errorf("%d uploads with those of tokens", all)
			}
		})
	}
}

// TestAddresses: visitors with presigned addresses share as those with tickets do, also the bytes
// of parts.
func TestAddresses(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	s.MaxOpen, s.MaxBytes = 100, 1000
	m := s.multipart(t)
	visitor := func(visitor int, rec Record) Creation {
		rec.Client, rec.Address, rec.Length = fmt.Sprintf("192.0.%d.1", visitor), fmt.Sprint("address ", visitor), Unknown
		return Creation{Record: rec, Files: 1, Limit: 10}
	}
	for name, c := range map[string]struct {
		rec  Record
		want []int
	}{
		"uploads": {Record{}, []int{9, 9, 9}},
		"parts":   {Record{Form: Part, Multipart: m.ID}, []int{30, 20, 13}},
	} {
		before := s.keys(t)
		for n, want := range c.want {
			created := 0
			for c.rec.Number = 1; s.mayCreate(t, visitor(n, c.rec)); c.rec.Number++ {
				created++
			}
			if created != want {
				t.Errorf("%s: visitor %d has %d, want %d", name, n, created, want)
			}
		}
		for _, key := range s.keys(t) {
			if !slices.Contains(before, key) {
				if err := s.Storages[0].Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestNumbers: parts of one number count as one towards the most of a multipart upload.
func TestNumbers(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	m := s.multipart(t)
	id := func(number int) string { return partID(m.ID, number, newID(time.Now(), &m.Record, 1, "default")) }
	for _, c := range []struct {
		name    string
		numbers int
		again   int // how often the first one was sent
		new     int
		has     int
		isFree  bool
	}{
		{"the last number", 9999, 1, 10_000, 9999, true},
		{"all, one again", 10_000, 1, 5, 9999, true},
		{"one that was sent often", 1, 20_000, 2, 1, true},
		{"one more than all", 10_001, 1, 10_002, 10_001, false},
	} {
		count := openCount{group: group(m.ID)}
		for number := range c.numbers {
			for range max(1, c.again*(1-min(number, 1))) {
				count.add(id(number+1), id(c.new))
			}
		}
		hasRoom := s.hasRoom(&count, &Creation{Record: Record{Owner: owner, Form: Part, Multipart: m.ID}}, 1)
		if count.numbers != c.has || hasRoom != c.isFree || count.uploads.Owner != 0 {
			t.Errorf("%s: %+v, room %t", c.name, count, hasRoom)
		}
	}
}

// TestNetwork: visitors of one network leave room to those of others.
func TestNetwork(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	create := func(client string) bool {
		return s.mayCreate(t, Creation{Record: Record{Length: 1, Ticket: client, Client: client}, Files: 100})
	}
	created := 0
	for visitor := range 20 {
		for create(fmt.Sprintf("192.0.2.%d", visitor)) {
			created++
		}
	}
	if created != 45 {
		t.Errorf("%d uploads of one network, want 45", created)
	}
	if !create("198.51.100.1") {
		t.Error("a visitor of another network is shut out")
	}
}

// TestRoom: the bounds of a ticket, a client and an account.
func TestRoom(t *testing.T) {
	t.Parallel()
	const client = "2001:db8::1"
	for _, c := range []struct {
		name            string
		maxOpen         int
		maxBytes        int64
		ticket, address string
		files           int
		length          int64
		ofOthers        int
		want            int
	}{
		{"token", 7, 100, "", "", 0, 1, 0, 7},
		{"token, bytes", 7, 100, "", "", 0, 40, 0, 2},
		{"token, all bytes", 7, 100, "", "", 0, 100, 0, 1},
		{"token, too large", 7, 100, "", "", 0, 101, 0, 0},
		{"one file", 1000, 1e6, "a", client, 1, 1, 0, 9},
		{"three files", 1000, 1e6, "a", client, 3, 1, 0, 11},
		{"many files", 100, 1e6, "a", client, 1000, 1, 0, 30},
		{"many files, few bytes", 100, 1000, "a", client, 1000, 300, 0, 1},
		{"many files, too large", 100, 1000, "a", client, 1000, 901, 0, 0},
		{"largest of a ticket", 100, 1000, "a", client, 1000, 900, 0, 1},
		{"small bounds", 1, 10, "a", client, 1, 9, 0, 1},
		{"beside tokens", 100, 1e6, "a", client, 1000, 1, 50, 13},
		{"reserve of tokens", 100, 1e6, "a", client, 1000, 1, 90, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := storeOn(t, memory.New())
			s.MaxOpen, s.MaxBytes = c.maxOpen, c.maxBytes
			for range c.ofOthers {
				s.mayCreate(t, Creation{Record: Record{Length: 1, Client: c.address}})
			}
			created := 0
			for s.mayCreate(t, Creation{Record: Record{Length: c.length, Ticket: c.ticket, Client: c.address}, Files: c.files}) {
				created++
			}
			if created != c.want {
				t.Errorf("%d uploads, want %d", created, c.want)
			}
		})
	}
}

// TestClient: addresses of one /64 are one client.
func TestClient(t *testing.T) {
	t.Parallel()
	id := func(address, ticket string) string {
		return newID(time.Now(), &Record{Owner: owner, Client: address, Ticket: ticket}, 5, "default")
	}
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"one address", id("192.0.2.1", "a"), id("192.0.2.1", "b"), true},
		{"two addresses", id("192.0.2.1", "a"), id("192.0.2.2", "a"), false},
		{"one network", id("2001:db8::1", "a"), id("2001:db8::2:3", "a"), true},
		{"two networks", id("2001:db8::1", "a"), id("2001:db8:0:1::1", "a"), false},
		{"token", id("192.0.2.1", "a"), id("192.0.2.1", ""), false},
	} {
		if same := clientTag(c.a) == clientTag(c.b); same != c.same {
			t.Errorf("%s: the same client: %t", c.name, same)
		}
	}
	if got := id("2001:db8::1", "a"); ticketTag(got) != tag("a") || storageTag(got) != tag("default") {
		t.Errorf("the ticket or the storage of %q is another", got)
	}
	for size, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 2 << 30: 2 << 30, 1 << 62: 2_821_109_907_455} {
		if id := newID(time.Now(), &Record{}, size, "default"); sizeOf(id) != want || !validID(id) {
			t.Errorf("size %d is %d in %q", size, sizeOf(id), id)
		}
	}
}

// TestRoomOfFinal: a final upload takes the room of its parts, although other parts of its client
// are more than the share of a client by now.
func TestRoomOfFinal(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	s.MaxOpen, s.MaxBytes = 40, 400
	visitor := Record{Owner: owner, Kind: "file", Ticket: "a", Client: "192.0.2.1"}
	parts := make([]string, 0, 4)
	for range 4 {
		c := Creation{Record: visitor, Admit: admit, Files: 2}
		c.Form, c.Length = Partial, 3
		u, err := s.Create(t.Context(), s.Storages[0], c)
		if err != nil {
			t.Fatal(err)
		}
		u.add(t, 0, "abc")
		parts = append(parts, u.ID)
	}
	for other := range 100 {
		client := fmt.Sprintf("198.51.100.%d", other)
		for s.mayCreate(t, Creation{Record: Record{Length: 1, Ticket: client, Client: client}, Files: 1}) {
		}
	}
	for i, file := range [][]string{parts[:2], parts[2:]} {
		c := Creation{Record: visitor, Admit: admit, Files: 2}
		c.Parts = file
		u, err := s.Create(t.Context(), s.Storages[0], c)
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		u.finished(t, Outcome{Stored: "x.txt"})
	}
}
