package mediahttp

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/resumable"
)

// describe sets the headers of an upload.
func (t *tus) describe(u *resumable.Upload) {
	header := t.w.Header()
	header.Set(headerOffset, strconv.FormatInt(u.Offset(), 10))
	if u.Length == resumable.Unknown {
		header.Set(headerDeferLength, "1")
	} else {
		header.Set(headerLength, strconv.FormatInt(u.Length, 10))
	}
	if u.Metadata != "" {
		header.Set(headerMetadata, u.Metadata)
	}
	switch {
	case u.Partial:
		header.Set(headerConcat, "partial")
	case u.Concat != "":
		header.Set(headerConcat, u.Concat)
	}
	t.describeEnd(u)
}

// describeEnd sets the header of the expiry and those of a stored item.
func (t *tus) describeEnd(u *resumable.Upload) {
	header := t.w.Header()
	header.Set(headerExpires, u.Expires().UTC().Format(http.TimeFormat))
	item, ok := t.service.ItemOf(u, t.baseURL)
	if !ok {
		return
	}
	if item.FullPath != "" { // its alias is configured
		header.Set(headerFullPath, item.FullPath)
	}
	header.Set(headerFilename, headerText(item.Filename))
	if item.WebP != "" {
		header.Set(headerWebP, item.WebP)
	}
}

// headerText returns a text with percent signs, control characters and everything beyond ASCII
// percent-encoded.
func headerText(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c == '%' || c < ' ' || c > '~' {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)|0x100, 16)[1:]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// resumableAnswer is the state of an unfinished upload.
type resumableAnswer struct {
	Success bool   `json:"success"`
	Offset  int64  `json:"offset"`
	Length  *int64 `json:"length"`
	// ExpiresAt is in Unix seconds.
	ExpiresAt int64 `json:"expires_at"`
}
