package service

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/fetch"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Download stores what an address has as an item, with the same checks as an upload. The address
// may be untrusted.
func (s *Service) Download(ctx context.Context, address string, req upload.Upload) ([]upload.Item, item.Failures) {
	alias, ok := s.Alias(req.Kind, req.Alias)
	if !ok {
		return nil, s.uploader.Refuse(ctx, req, item.Failf(item.BadRequest, "unknown alias %.64q", req.Alias))
	}
	from, err := s.remote.Get(ctx, address)
	if err != nil {
		return nil, s.uploader.Refuse(ctx, req, remoteFailure(err))
	}
	defer from.Body.Close()
	name, body, failure := open(from, alias)
	if failure != nil {
		return nil, s.uploader.Refuse(ctx, req, failure)
	}
	return s.uploader.Upload(ctx, req, upload.Single(name, body))
}

// maxImports is how many addresses are fetched at once for the uploads of an account.
const maxImports = 4

// Importer returns the importer of an actor's uploads, within the limits of [Downloads]. Imports
// beyond the limit of the account wait.
func (s *Service) Importer(actor item.Actor) upload.Importer {
	return func(ctx context.Context, address string, alias *item.Alias) (string, io.ReadCloser, *item.Failure) {
		slot, err := s.process.imports.Acquire(ctx, queue.Request{Owner: actor.Owner(), Most: maxImports})
		if err != nil {
			return "", nil, remoteFailure(err)
		}
		from, err := s.remote.Get(ctx, address)
		if err != nil {
			slot.Release()
			return "", nil, remoteFailure(err)
		}
		content := &imported{download: from.Body, slot: slot}
		name, body, failure := open(from, alias)
		if failure != nil {
			if err := content.Close(); err != nil {
				failure.Err = errors.Join(failure.Err, err)
			}
			return "", nil, failure
		}
		content.Reader = body
		return name, content, nil
	}
}

// imported is the content of an address that is being fetched.
type imported struct {
	io.Reader
	download io.Closer
	slot     *queue.Slot
}

// Close ends the download and releases its slot.
func (i *imported) Close() error {
	defer i.slot.Release()
	return i.download.Close()
}

// open returns the name of a download and a reader of all its bytes.
func open(from *fetch.Download, alias *item.Alias) (string, io.Reader, *item.Failure) {
	if from.Size > alias.MaxSize {
		return "", nil, &item.Failure{
			Reason: item.TooLarge, Message: "larger than " + bytesize.Format(alias.MaxSize),
		}
	}
	ext := naming.Extension(from.Name)
	if ext != "" && (alias.Kind == item.File || alias.MayName(ext)) {
		return from.Name, remoteBody{from.Body}, nil
	}
	found, whole, err := imaging.Guess(from.Body)
	if err != nil {
		return "", nil, remoteFailure(err)
	}
	name := strings.TrimRight(from.Name, ". ")
	if name == "" {
		name = alias.Kind.Name()
	}
	if found != "" {
		name += "." + found
	}
	return name, remoteBody{whole}, nil
}

// remoteFailure returns the failure of an item that could not be downloaded.
func remoteFailure(err error) *item.Failure {
	const failed = "the download failed"
	f := &item.Failure{Reason: item.RemoteFailed, Message: failed, Err: err}
	if known, ok := errors.AsType[*fetch.Error](err); ok {
		f.Message = known.Message
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, fetch.ErrRefused), errors.Is(err, context.Canceled):
		f.Reason = item.BadRequest
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		f.Reason = item.RemoteSlow
	}
	if f.Reason == item.RemoteSlow && f.Message == failed {
		f.Message = "the download took too long" // before it began
	}
	return f
}

// remoteBody maps read errors to failures.
type remoteBody struct{ io.Reader }

func (b remoteBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // only io.EOF itself is the end
		err = remoteFailure(err)
	}
	return n, err
}
