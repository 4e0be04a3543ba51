package resumable

import (
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// FuzzID: the ID in an address is refused, or all keys of its upload are valid and below the folder of
// the uploads.
func FuzzID(f *testing.F) {
	id := newID(time.Unix(1795176000, 0), &Record{}, 0, "default")
	short := id[:clientAt] + id[len(id)-tagLength:]
	for _, seed := range []string{"", id, short, id[1:], id + "a", strings.ToUpper(id), "../" + id[3:], "%2e%2e" + id[6:], id[:10] + "/" + id[11:], id[:10] + "\x00" + id[11:], id[:9] + "ä" + id[11:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if !validID(id) {
			return
		}
		if len(ticketTag(id)) != tagLength || len(clientTag(id)) != tagLength || len(storageTag(id)) != tagLength || sizeOf(id) < 0 {
			t.Errorf("%q has no tags", id)
		}
		for _, key := range []string{recordKey(owner, id), pieceKey(id, 1<<40), outcomeKey(id)} {
			if err := storagedrivers.ValidKey(key); err != nil || !strings.HasPrefix(key, Folder+"/") {
				t.Errorf("key %q: %v", key, err)
			}
		}
		if found, ok := idOfRecord(recordKey(owner, id)); !ok || found != id {
			t.Errorf("the record of %q is of %q, %t", id, found, ok)
		}
		if found, ok := idOfData(pieceKey(id, 0)); !ok || found != id {
			t.Errorf("the data of %q is of %q, %t", id, found, ok)
		}
	})
}
