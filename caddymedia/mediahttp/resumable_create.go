package mediahttp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/resumable"
	"github.com/caddymedia/media/caddymedia/upload"
)

// Bounds of the headers of a creation.
const (
	maxMetadata = 8 << 10
	maxParts    = 300 // of IDs alone, as many as fit into the headers that Caddy accepts
	maxConcat   = 128 << 10
)

// create creates an upload, with its first bytes if the request has a body.
func (t *tus) create() error {
	rec, refused := t.record()
	if refused != nil {
		return t.refuseWith(refused)
	}
	hasBody := isTusBody(t.r) && t.r.ContentLength != 0
	if !hasBody && !t.isEmpty() {
		return t.refuse(http.StatusUnsupportedMediaType, "the Content-Type of the first bytes must be "+tusType)
	}
	if hasBody && len(rec.Parts) > 0 {
		return t.refuse(http.StatusBadRequest, "a final upload has no bytes of its own")
	}
	creation := resumable.Creation{
		Record: *rec, Limit: t.limit(rec), Admit: func(length int64) error { return t.admit(rec, length) },
	}
	if ticket := t.caller.Ticket; ticket != nil {
		creation.SubFolder = cmp.Or(ticket.SubFolder, rec.SubFolder)
		creation.Filename = cmp.Or(ticket.Filename, rec.Filename)
		creation.Files = ticket.Left()
	}
	u, err := t.service.Uploads().Create(t.r.Context(), t.service.UploadStorage(t.kind, rec.Alias), creation)
	if err != nil {
		return t.refuseError(err)
	}
	if isRefused(u) { // a final upload may have existed
		return t.refuse(http.StatusGone, u.Outcome.Refused)
	}
	if hasBody {
		if err := t.append(u, 0, resumable.Unknown); err != nil && (u.Offset() == 0 || errors.Is(err, resumable.ErrTooLarge)) {
			t.drop(u, nil)
			return t.refuseError(err)
		}
	}
	header := t.w.Header()
	header.Set("Location", t.path+"/"+u.ID)
	finish := t.service.FinishNew
	if len(u.Parts) > 0 {
		finish = t.service.FinishUpload // a repeated request finds it
	}
	if err := t.finishBy(u, finish); err != nil {
		failures, _ := errors.AsType[aliases.Failures](err)
		if t.drop(u, failures) {
			header.Del("Location")
		}
		return t.refuseError(err)
	}
	header.Set(headerOffset, strconv.FormatInt(u.Offset(), 10))
	t.describeEnd(u)
	t.w.WriteHeader(http.StatusCreated)
	return nil
}

// isEmpty reports whether the request has no body. The length of one over HTTP/3 may be unknown.
func (t *tus) isEmpty() bool {
	if t.r.ContentLength >= 0 || t.r.Body == nil {
		return t.r.ContentLength <= 0
	}
	body, stop := newTimedBody(t.w, t.r.Body, emptyTime)
	defer stop()
	n, err := io.ReadFull(body, make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// emptyTime bounds the wait for the end of an empty body.
const emptyTime = 5 * time.Second

// drop removes an upload whose creation fails, because its client will create another one. failures
// are those of its item, nil if it was not received. It returns false if a later request can find the
// upload, or if its item may be stored.
func (t *tus) drop(u *resumable.Upload, failures aliases.Failures) bool {
	if len(u.Parts) > 0 || u.Outcome != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.r.Context()), dropTime)
	defer cancel()
	err := u.Reload(ctx)
	if err == nil && (u.Outcome != nil || u.Claimed()) {
		return false
	}
	if err == nil {
		err = t.service.DropUpload(ctx, u, failures)
	}
	if err != nil {
		t.options.Log.Warn("removing a resumable upload", "error", err)
	}
	return err == nil
}

// dropTime bounds the removal of an upload or a ticket whose creation fails.
const dropTime = 10 * time.Second

// record returns the record of the upload that the request creates.
func (t *tus) record() (*resumable.Record, *refusal) {
	rec := &resumable.Record{
		Owner: t.actor.Owner(), Origin: string(t.actor.Origin), Account: t.actor.Account, Client: t.actor.Client,
		Scope: t.caller.Scope(), Kind: t.kind.Name(), Length: resumable.Unknown,
	}
	if ticket := t.caller.Ticket; ticket != nil {
		rec.Ticket, rec.TicketExpires = hex.EncodeToString(ticket.ID[:]), ticket.Expires
	}
	if err := t.readConcat(rec); err != nil {
		return nil, badRequest(err)
	}
	if err := t.readLength(rec); err != nil {
		return nil, badRequest(err)
	}
	metadata, err := t.readMetadata(rec)
	if err != nil {
		return nil, badRequest(err)
	}
	rec.Filename, rec.SubFolder = cmp.Or(metadata["filename"], metadata["name"]), metadata["sub_folder"]
	if !rec.Partial {
		rec.Alias = metadata["alias"]
	}
	rec.Alias = cmp.Or(rec.Alias, forcedBy(t.caller).Alias, aliases.DefaultAlias)
	if rec.Filename == "" && !rec.Partial {
		return nil, badRequest(errors.New("Upload-Metadata has no filename"))
	}
	return rec, nil
}

func badRequest(err error) *refusal {
	return &refusal{http.StatusBadRequest, aliases.BadRequest, err.Error()}
}

// readConcat reads the header Upload-Concat.
func (t *tus) readConcat(rec *resumable.Record) error {
	value, err := single(t.r.Header, headerConcat)
	if err != nil || value == "" {
		return err
	}
	if value == "partial" {
		rec.Partial = true
		return nil
	}
	if len(value) > maxConcat || !isHeaderText(value) {
		return errors.New("Upload-Concat is larger than 128 KiB, or is no text")
	}
	list, ok := strings.CutPrefix(value, "final;")
	parts := strings.Fields(list)
	if !ok || len(parts) == 0 || len(parts) > maxParts {
		return errors.New(`Upload-Concat is "partial", or "final;" and up to 300 addresses`)
	}
	rec.Concat = value
	for _, part := range parts {
		address, err := url.Parse(part)
		if err != nil {
			return errors.New("Upload-Concat has an invalid address")
		}
		rec.Parts = append(rec.Parts, path.Base(address.Path))
	}
	return nil
}

// readLength reads the headers Upload-Length and Upload-Defer-Length.
func (t *tus) readLength(rec *resumable.Record) error {
	text, err := single(t.r.Header, headerLength)
	if err != nil {
		return err
	}
	deferred, err := single(t.r.Header, headerDeferLength)
	switch {
	case err != nil:
		return err
	case deferred != "" && deferred != "1":
		return errors.New("the value of Upload-Defer-Length is 1")
	case len(rec.Parts) > 0 && (text != "" || deferred != ""):
		return errors.New("a final upload has the length of its parts: leave out Upload-Length")
	case len(rec.Parts) > 0 || deferred != "" && text == "":
		return nil
	case text == "" || deferred != "":
		return errors.New("send either Upload-Length or Upload-Defer-Length: 1")
	}
	rec.Length, err = number(headerLength, text)
	return err
}

// readMetadata reads the header Upload-Metadata.
func (t *tus) readMetadata(rec *resumable.Record) (map[string]string, error) {
	value, err := single(t.r.Header, headerMetadata)
	if err != nil {
		return nil, err
	}
	if len(value) > maxMetadata {
		return nil, errors.New("Upload-Metadata is larger than 8 KiB")
	}
	if !isHeaderText(value) {
		return nil, errors.New("Upload-Metadata has control characters, or is no UTF-8")
	}
	rec.Metadata = value
	return parseMetadata(value)
}

// parseMetadata returns the pairs of the header Upload-Metadata.
func parseMetadata(header string) (map[string]string, error) {
	pairs := map[string]string{}
	if strings.TrimSpace(header) == "" {
		return pairs, nil
	}
	for pair := range strings.SplitSeq(header, ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		value, err := base64.StdEncoding.DecodeString(encoded)
		if key == "" || err != nil {
			return nil, errors.New("Upload-Metadata is malformed: it consists of keys and values in Base64")
		}
		if _, twice := pairs[key]; twice {
			return nil, errors.New("Upload-Metadata has a key twice")
		}
		pairs[key] = string(value)
	}
	return pairs, nil
}

// admit returns the failures with which an upload of a length is sure to be refused.
func (t *tus) admit(rec *resumable.Record, length int64) error {
	if length > t.maxSize() || rec.Partial && length > t.limit(rec) {
		return aliases.Failures{{Reason: aliases.TooLarge, Message: "larger than any item may be", Filename: rec.Filename}}
	}
	if t.caller.UsedUp() {
		return aliases.Failures{{Reason: usedUp.reason, Message: usedUp.message}}
	}
	if rec.Partial {
		return nil
	}
	req := upload.Request{
		Kind: t.kind, Alias: rec.Alias, SubFolder: rec.SubFolder, Actor: t.actor, BaseURL: t.baseURL,
		Allows: func(alias string) bool { return t.caller.Allows(t.kind.Name(), alias) },
		Forced: forcedBy(t.caller),
	}
	if failures := t.service.Uploader().Precheck(t.r.Context(), req, rec.Filename, length); failures != nil {
		return failures
	}
	return nil
}

// single returns the value of a header that may be sent once; empty if it is not sent.
func single(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) > 1 {
		return "", errors.New(name + " is sent twice")
	}
	return header.Get(name), nil
}

// number returns the value of a header that is a non-negative integer. A larger one than the largest
// int64 is that.
func number(name, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if value == "" || strings.Trim(value, "0123456789") != "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errors.New(name + " is no number of bytes")
	}
	return n, nil
}

// isHeaderText reports whether a received value can be sent in a header and stored as JSON.
func isHeaderText(value string) bool {
	return utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}
