package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	// resumeFrom is the size from which files are sent by resumable uploads, in bytes.
	resumeFrom = 16 << 20
	// maxCuts is the number of attempts without progress after which an upload is given up.
	maxCuts = 8
	// maxResumePause is the longest pause before an upload that was cut is continued.
	maxResumePause = 30 * time.Second
)

// errContinues means that the next run continues an upload.
var errContinues = errors.New("run the same command again to continue the upload")

// resumption is the resumable upload of one file.
type resumption struct {
	*uploadClient
	upload upload
	file   *os.File
	stat   os.FileInfo // when the upload began
	size   int64

	path  string // of the state
	saved bool
	state uploadState
	at    int64 // bytes that the service has; they are counted
}

// uploadResumable sends a file by a resumable upload. It continues one of an earlier run.
func (c *uploadClient) uploadResumable(ctx context.Context, u upload, file *os.File, size int64) (uploaded, error) {
	stat, err := file.Stat()
	if err != nil {
		return uploaded{}, withoutPath(err)
	}
	absolute, err := filepath.Abs(u.File)
	if err != nil {
		return uploaded{}, err
	}
	r := &resumption{uploadClient: c, upload: u, file: file, stat: stat, size: size}
	r.path = c.states.path(c.server.String(), c.apiKey, u.Kind, u.Alias, u.SubFolder, absolute,
		strconv.FormatInt(size, 10), strconv.FormatInt(stat.ModTime().UnixNano(), 10))
	r.state, r.saved = c.states.read(r.path, c.now())
	item, err := r.run(ctx)
	switch {
	case err == nil, isFinal(err):
		c.states.remove(r.path)
	case r.saved:
		err = fmt.Errorf("%w; %w", err, errContinues)
	}
	if err != nil {
		u.Sent(-r.at)
	}
	return item, err
}

// run sends the rest of the file until the service has all of it.
func (r *resumption) run(ctx context.Context) (uploaded, error) {
	var err error
	if r.state.Address != "" {
		err = r.ask(ctx)
	}
	for cuts, before := 1, int64(-1); ; cuts++ {
		if err == nil && r.state.Address == "" {
			err = r.begin(ctx)
		}
		if err == nil {
			var item uploaded
			if item, err = r.send(ctx); err == nil {
				return item, nil
			}
		}
		if r.at > before {
			cuts, before = 1, r.at
		}
		switch {
		case ctx.Err() != nil:
			return uploaded{}, context.Cause(ctx)
		case r.hasChanged():
			return uploaded{}, errChanged
		case isGone(err) && r.state.Address != "" && cuts < maxCuts:
			r.forget()
			err = nil
			continue
		case !isTemporary(err) || cuts == maxCuts:
			return uploaded{}, err
		}
		retryAfter := ""
		if refused, ok := errors.AsType[*refusedError](err); ok {
			retryAfter = refused.retryAfter
		}
		if err := r.wait(ctx, min(r.pause(retryAfter, cuts), maxResumePause)); err != nil {
			return uploaded{}, err
		}
		if err = nil; r.state.Address != "" {
			err = r.ask(ctx)
		}
	}
}

// begin creates the upload and keeps its address for the next run.
func (r *resumption) begin(ctx context.Context) error {
	state, err := r.create(ctx, r.upload, r.size)
	if err != nil {
		return err
	}
	r.state, r.saved = state, r.states.write(r.path, state)
	return nil
}

// forget drops an upload that the service no longer has.
func (r *resumption) forget() {
	r.states.remove(r.path)
	r.upload.Sent(-r.at)
	r.state, r.saved, r.at = uploadState{}, false, 0
}

// ask asks the service for the bytes that it has.
func (r *resumption) ask(ctx context.Context) error {
	offset, expires, err := r.offset(ctx, r.address())
	if err != nil {
		return err
	}
	if offset > r.size {
		return notOfTheService()
	}
	r.upload.Sent(offset - r.at)
	r.at = offset
	if expires > r.state.ExpiresAt {
		r.state.ExpiresAt = expires
		r.saved = r.states.write(r.path, r.state)
	}
	return nil
}

func (r *resumption) address() string {
	address := *r.server
	address.Path, address.RawPath = r.state.Address, ""
	return address.String()
}

// send sends the rest of the file, and returns the item if the service has all of it.
func (r *resumption) send(ctx context.Context) (uploaded, error) {
	if r.at < r.size {
		sent := &counter{add: r.upload.Sent}
		header, _, err := r.tus(ctx, http.MethodPatch, r.address(), func() io.Reader {
			sent.undo() // an attempt with an expired token
			sent = &counter{add: r.upload.Sent}
			return io.TeeReader(io.NewSectionReader(r.file, r.at, r.size-r.at), sent)
		}, map[string]string{
			"Content-Type": "application/offset+octet-stream", "Upload-Offset": strconv.FormatInt(r.at, 10),
			"Content-Length": strconv.FormatInt(r.size-r.at, 10),
			"Expect":         "100-continue", // or all of a large file is sent to be refused
		})
		sent.undo()
		if err != nil {
			return uploaded{}, err
		}
		if header.Get("Upload-Offset") != strconv.FormatInt(r.size, 10) {
			return uploaded{}, notOfTheService()
		}
		r.upload.Sent(r.size - r.at)
		r.at = r.size
	}
	return r.result(ctx, r.address())
}

// errChanged means that a file is not the one whose upload began.
var errChanged = errors.New("the file has changed while it was sent: upload it again")

func (r *resumption) hasChanged() bool {
	now, err := r.file.Stat()
	return err == nil && (now.Size() != r.stat.Size() || !now.ModTime().Equal(r.stat.ModTime()))
}

// isFinal reports whether another run could not continue the upload.
func isFinal(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	return errors.Is(err, errChanged) || ok && refused.status != http.StatusUnauthorized && !isTemporary(err)
}

// isGone reports whether the service no longer has the upload.
func isGone(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	return ok && refused.status == http.StatusNotFound
}

// isTemporary reports whether an upload can be continued after an error: a connection that broke, a
// server that restarts, another offset, or a busy service.
func isTemporary(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		return true
	}
	switch refused.status {
	case http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInternalServerError, http.StatusRequestTimeout:
		return true
	}
	return false
}
