package media

import (
	"cmp"
	"context"
	"strings"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/upload"
)

// Result is the outcome of storing an item for Go code. As JSON it is
// {"success":true,"full_path":"...","filename":"..."}, with "webp" for an image that has a
// variant and "renditions" for one that has renditions, or {"success":false,"message":"..."}.
type Result struct {
	Success bool `json:"success"`
	// FullPath is the public address of the item. It begins with the base URL of the alias, or
	// without one at "/static/".
	FullPath string `json:"full_path,omitempty"`
	// Filename is the stored name, relative to the alias, sub folder included: what to keep in a
	// database.
	Filename string `json:"filename,omitempty"`
	// WebP is the public address of the variant; empty where there is none.
	WebP string `json:"webp,omitempty"`
	// Renditions are the public addresses of the renditions by their names; nil if there are none.
	Renditions map[string]string `json:"renditions,omitempty"`
	// Message is why nothing was stored. It may be shown to anybody: it never has a path, host,
	// address or secret. The details are logged.
	Message string `json:"message,omitempty"`
}

// request returns a request of Go code, on behalf of the client of ctx if there is one.
func (s *Service) request(ctx context.Context, kind aliases.Kind, alias, subFolder string) upload.Request {
	return upload.Request{
		Kind: kind, Alias: cmp.Or(alias, aliases.DefaultAlias), SubFolder: subFolder,
		Actor: aliases.Actor{Origin: aliases.OriginGo, Client: s.client(ctx)},
	}
}

// upload calls store while the service is open, and returns its result for one item.
func (s *Service) upload(store func() ([]upload.Item, aliases.Failures)) Result {
	_, release, err := s.Acquire()
	if err != nil {
		return Result{Message: "the media service does not run"}
	}
	defer release()
	items, failures := store()
	if failures != nil {
		return s.failed(failures)
	}
	item := items[0]
	return Result{
		Success: true, FullPath: item.FullPath, Filename: item.Filename, WebP: item.WebP, Renditions: item.Renditions,
	}
}

// failed logs the details of failures and returns their messages.
func (s *Service) failed(failures aliases.Failures) Result {
	messages := make([]string, len(failures))
	for i, f := range failures {
		messages[i] = f.Message
		if f.Err != nil {
			s.log.Warn("storing an item for Go code", "message", f.Message, "error", f.Err)
		}
	}
	return Result{Message: strings.Join(messages, "; ")}
}
