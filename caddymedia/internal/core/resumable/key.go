package resumable

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// The parts of an ID: the day of its creation, random characters of 5 bits each, hashes of its
// ticket and of its client, its size, and a hash of the name of its storage. So a listing of IDs is
// enough to count uploads.
const (
	dayLength    = 5
	randomLength = 26
	tagLength    = 6
	sizeLength   = 8
	// networkLength is the part of the tag of a client that is the tag of its network.
	networkLength = 3
	idLength      = dayLength + randomLength + 3*tagLength + sizeLength

	ticketAt = dayLength + randomLength
	clientAt = ticketAt + tagLength
	sizeAt   = clientAt + tagLength
)

// lower encodes bytes as letters and digits that no storage folds.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newID returns a new ID with 130 random bits, for an upload of size bytes.
func newID(now time.Time, rec *Record, size int64, storage string) string {
	return day(now) + strings.ToLower(rand.Text())[:randomLength] + rec.heldTag(tag(rec.credential())) + clientTagOf(rec) +
		sizeText(size) + tag(storage)
}

// sameID returns the ID of an upload that is the same for all attempts at a request, which same and
// the time of the first one identify.
func sameID(id string, began time.Time, same string) string {
	return day(began) + digest(same)[:randomLength] + id[ticketAt:]
}

// heldMark begins the tag of the ticket in the ID of an upload that is held, or keeps such ones.
// Other tags have no such character.
const heldMark = "0"

// heldTag returns the tag of a ticket, marked if the upload is held.
func (r *Record) heldTag(tag string) string {
	if r.Hold == 0 && r.Form != Keep {
		return tag
	}
	return heldMark + tag[len(heldMark):]
}

// isHeld reports whether the ID is that of an upload that is held, or keeps such ones.
func isHeld(id string) bool { return strings.HasPrefix(ticketTag(id), heldMark) }

// finalID returns the ID of an upload with parts. It is as hard to guess as the IDs of the parts.
// Any ticket of the same scope gets the same ID, with the ticket and the client of the first part.
// Its bytes are those of its parts, so its own size is 0.
func finalID(rec *Record, storage string) string {
	identity, err := json.Marshal([]any{rec.Owner, rec.Kind, rec.Parts, rec.Metadata, rec.Multipart})
	if err != nil {
		panic(err) // texts only
	}
	first := rec.Parts[0]
	return first[:dayLength] + digest(string(identity))[:randomLength] + rec.heldTag(ticketTag(first)) + clientTag(first) +
		sizeText(0) + tag(storage)
}

// clientTagOf returns the tag of the client whose uploads are counted together, which begins with
// that of its network. It is the same for all tokens, whose uploads count for their account only.
func clientTagOf(rec *Record) string {
	party := rec.party()
	if party.Client == "" {
		return tag("")
	}
	return tag(party.Owner + " " + party.Network)[:networkLength] + tag(party.Owner + " " + party.Client)[networkLength:]
}

// party returns the party by which the upload is counted.
func (r *Record) party() queue.Party { return item.PartyOf(r.Owner, r.credential(), r.Client) }

// credential returns the ID of the ticket or of the presigned address that created the upload;
// empty for neither.
func (r *Record) credential() string { return cmp.Or(r.Ticket, r.Address) }

// tag returns a short hash of the name of a storage, of the ID of a ticket, or of a client, for
// IDs.
func tag(text string) string { return digest(text)[:tagLength] }

// storageTag returns the tag of the storage in an ID.
func storageTag(id string) string { return id[len(id)-tagLength:] }

// ticketTag returns the tag of the ticket in an ID.
func ticketTag(id string) string { return id[ticketAt:clientAt] }

// clientTag returns the tag of the client in an ID.
func clientTag(id string) string { return id[clientAt:sizeAt] }

// networkTag returns the tag of the network of the client in an ID.
func networkTag(id string) string { return clientTag(id)[:networkLength] }

// sizeBase is the base of the size in an ID.
const sizeBase = 36

// sizeText returns a size for an ID. More than 2.8 TB counts as that.
func sizeText(size int64) string {
	const most = 2_821_109_907_455 // the largest number of this length
	return fmt.Sprintf("%0*s", sizeLength, strconv.FormatInt(min(max(size, 0), most), sizeBase))
}

// sizeOf returns the size in an ID.
func sizeOf(id string) int64 {
	size, _ := strconv.ParseInt(id[sizeAt:sizeAt+sizeLength], sizeBase, 64) // any such text is a number
	return size
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return lower.EncodeToString(sum[:])
}

// day returns the day of a time, in UTC.
func day(t time.Time) string { return fmt.Sprintf("%0*d", dayLength, t.Unix()/(24*60*60)) }

func validID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

const (
	openFolder = Folder + "/open/"
	dataFolder = Folder + "/data/"
	doneFolder = Folder + "/done/"
)

// ownerLength is the length of the hash of an owner in characters of 5 bits.
const ownerLength = 26

// recordKey returns the key of a record. Without an ID it is the beginning of all keys of the
// owner.
func recordKey(owner, id string) string { return openFolder + digest(owner)[:ownerLength] + "." + id }

// dataKey returns a key below an upload. Without a name it is the beginning of all of them.
func dataKey(id, name string) string {
	return dataFolder + id[dayLength:dayLength+1] + "/" + id + "." + name
}

func outcomeKey(id string) string { return doneFolder + id[:dayLength] + "/" + id }

// endText returns what follows the [outcomeKey] of a held upload that was kept: when it ends, so
// that a sweep need not read it. The zero time is that of other outcomes.
func endText(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return "." + strconv.FormatInt(until.Unix(), 10)
}

// endOfOutcome returns when the outcome of a held upload ends, and false for other keys.
func endOfOutcome(key string) (end time.Time, ok bool) {
	_, text, _ := strings.Cut(key[strings.LastIndexByte(key, '/')+1:], ".")
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// Names of objects below an upload.
const (
	bytesName  = "bytes"
	lengthName = "length"
	heldName   = "held"
	keptName   = "kept"
)

// idOfRecord returns the ID in the key of a record, and false for other keys.
func idOfRecord(key string) (id string, ok bool) {
	_, id, ok = strings.Cut(strings.TrimPrefix(key, openFolder), ".")
	return id, ok && validID(id)
}

// idOfData returns the ID in the key of data, and false for other keys.
func idOfData(key string) (id string, ok bool) {
	name := key[strings.LastIndexByte(key, '/')+1:]
	id, _, ok = strings.Cut(name, ".")
	return id, ok && validID(id)
}
