package mediacmd

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// resumeFrom is the size from which files are sent by resumable uploads, in bytes.
	resumeFrom = 16 << 20
	// terminateTime is the time limit for removing a failed resumable upload.
	terminateTime = 5 * time.Second
	// expectContinue keeps a large file from being sent only to be refused.
	expectContinue = "100-continue"
)

// uploaded is a stored item in the service's answer.
type uploaded struct {
	FullPath   string            `json:"full_path,omitempty"`
	Filename   string            `json:"filename,omitempty"`
	WebP       string            `json:"webp,omitempty"`
	Renditions map[string]string `json:"renditions,omitempty"`
}

// upload is the upload of one file.
type upload struct {
	kind             string // the endpoint, "image" or "file"
	alias, subFolder string // empty for the defaults of the service
	file             *os.File
	stat             os.FileInfo // when the upload began
	inOneRequest     bool
	sent             *sentBytes
}

// from returns a reader of the file from an offset, for one attempt.
func (u upload) from(offset int64) io.Reader {
	u.sent.set(offset)
	return io.TeeReader(io.NewSectionReader(u.file, offset, u.stat.Size()-offset), u.sent)
}

// fields returns the fields of the form or of the metadata, without empty ones.
func (u upload) fields() [][2]string {
	fields := [][2]string{{"alias", u.alias}, {"sub_folder", u.subFolder}}
	return slices.DeleteFunc(fields, func(field [2]string) bool { return field[1] == "" })
}

// sentBytes counts the bytes of a file that were sent, and shows them on a bar.
type sentBytes struct {
	bar *bar
	n   atomic.Int64
}

func (s *sentBytes) Write(p []byte) (int, error) {
	s.n.Add(int64(len(p)))
	s.bar.add(int64(len(p)))
	return len(p), nil
}

func (s *sentBytes) set(n int64) { s.bar.add(n - s.n.Swap(n)) }

// upload sends a file.
func (c *uploadClient) upload(ctx context.Context, u upload) (uploaded, error) {
	var answer uploadAnswer
	err := errNotOffered
	if u.stat.Size() >= resumeFrom && !u.inOneRequest {
		answer, err = c.uploadResumable(ctx, u)
	}
	if errors.Is(err, errNotOffered) {
		answer, err = c.uploadForm(ctx, u)
	}
	if err == nil && len(answer.Result) == 0 {
		err = errNotMedia
	}
	if err != nil {
		return uploaded{}, err
	}
	return answer.Result[0], nil
}

// uploadForm sends a file as a multipart form. It does not send it again after a broken connection,
// because the item may have been stored.
func (c *uploadClient) uploadForm(ctx context.Context, u upload) (answer uploadAnswer, err error) {
	var form bytes.Buffer // it never fails
	w := multipart.NewWriter(&form)
	for _, field := range u.fields() {
		_ = w.WriteField(field[0], field[1])
	}
	_, _ = w.CreateFormFile("files[]", u.stat.Name())
	head := form.Len()
	_ = w.Close()
	r := request{
		method: http.MethodPost, address: c.server.JoinPath("api/upload", u.kind).String(),
		header: map[string]string{"Content-Type": w.FormDataContentType(), "Expect": expectContinue},
		body: func() io.Reader {
			return io.MultiReader(bytes.NewReader(form.Bytes()[:head]), u.from(0), bytes.NewReader(form.Bytes()[head:]))
		},
		length: int64(form.Len()) + u.stat.Size(),
	}
	err = c.retry(ctx, busyTries, isBusy, func() (bool, error) {
		_, body, err := c.send(ctx, r)
		if err == nil {
			answer, err = answerIn(body)
		}
		return false, err
	})
	return answer, err
}

// uploadAnswer is an answer of the service: an item, or the state of a resumable upload.
type uploadAnswer struct {
	Success bool
	Result  []uploaded
	Offset  int64
}

func answerIn(body []byte) (answer uploadAnswer, err error) {
	if json.Unmarshal(body, &answer) != nil || !answer.Success || len(answer.Result) > 1 {
		err = errNotMedia
	}
	return answer, err
}

// uploadResumable sends a file by a resumable upload, https://tus.io/protocols/resumable-upload. After
// a cut connection it continues from the last byte that the service has.
func (c *uploadClient) uploadResumable(ctx context.Context, u upload) (answer uploadAnswer, err error) {
	address, offset := "", int64(0)
	err = c.retry(ctx, resumeTries, isTemporary, func() (progress bool, err error) {
		now, err := u.file.Stat()
		switch {
		case err != nil:
			return false, err
		case now.Size() != u.stat.Size() || !now.ModTime().Equal(u.stat.ModTime()):
			return false, errChanged
		case address == "":
			address, err = c.create(ctx, u)
		default:
			answer, err = c.state(ctx, address)
			progress = answer.Offset > offset
			offset = max(offset, answer.Offset)
		}
		if err == nil && len(answer.Result) == 0 {
			if err = c.sendRest(ctx, u, address, answer.Offset); err == nil {
				answer, err = c.state(ctx, address)
			}
		}
		return progress, err
	})
	if err != nil && address != "" {
		// No later run continues it. Without this request the service holds its data until it expires.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), terminateTime)
		defer cancel()
		_, _, _ = c.send(ctx, tusRequest(http.MethodDelete, address))
	}
	return answer, err
}

func tusRequest(method, address string) request {
	return request{method: method, address: address, header: map[string]string{"Tus-Resumable": "1.0.0"}}
}

// create creates a resumable upload and returns its address.
func (c *uploadClient) create(ctx context.Context, u upload) (string, error) {
	endpoint := c.server.JoinPath("api/upload", u.kind, "resumable")
	fields := append(u.fields(), [2]string{"filename", u.stat.Name()})
	metadata := make([]string, 0, len(fields))
	for _, field := range fields {
		metadata = append(metadata, field[0]+" "+base64.StdEncoding.EncodeToString([]byte(field[1])))
	}
	r := tusRequest(http.MethodPost, endpoint.String())
	r.header["Upload-Length"] = strconv.FormatInt(u.stat.Size(), 10)
	r.header["Upload-Metadata"] = strings.Join(metadata, ",")
	header, _, err := c.send(ctx, r)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusNotFound && refused.header.Get("Tus-Resumable") == "" {
		err = errNotOffered
	}
	if err != nil {
		return "", err
	}
	location, err := endpoint.Parse(header.Get("Location"))
	if err != nil || header.Get("Location") == "" || location.Host != endpoint.Host || location.Scheme != endpoint.Scheme {
		return "", errNotMedia // the token must not go elsewhere
	}
	return location.String(), nil
}

// sendRest sends a file from an offset to its end.
func (c *uploadClient) sendRest(ctx context.Context, u upload, address string, offset int64) error {
	r := tusRequest(http.MethodPatch, address)
	r.header["Content-Type"], r.header["Expect"] = "application/offset+octet-stream", expectContinue
	r.header["Upload-Offset"] = strconv.FormatInt(offset, 10)
	r.body, r.length = func() io.Reader { return u.from(offset) }, u.stat.Size()-offset
	_, _, err := c.send(ctx, r)
	return err
}

// state returns the number of bytes that the service has, or the item once it has all. It uses GET,
// because an answer to HEAD does not say why an item was refused.
func (c *uploadClient) state(ctx context.Context, address string) (answer uploadAnswer, err error) {
	_, body, err := c.send(ctx, tusRequest(http.MethodGet, address))
	if err == nil {
		answer, err = answerIn(body)
	}
	return answer, err
}
