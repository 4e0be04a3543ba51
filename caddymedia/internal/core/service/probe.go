package service

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// unsignedTime bounds the request of a probe without a signature.
	unsignedTime = 10 * time.Second
	noteUnsigned = "An object can be read in the backend without a signature: whoever knows the address of a private item " +
		"there can read it. Make the bucket private."
)

// Probe tests a storage as [storagedrivers.Storage.Probe] does. If it has private items and a
// driver that signs addresses, another step requests an object without a signature for each private
// alias, because a bucket may be public below a prefix. Its note warns if the backend serves one.
func (s *Service) Probe(ctx context.Context, storage *storagedrivers.Storage) storagedrivers.Report {
	report := storage.Probe(ctx)
	private := slices.DeleteFunc(s.Aliases(), func(a *item.Alias) bool { return a.Private == nil || a.Storage != storage })
	if len(private) == 0 || !storage.CanPresign() || !report.OK() {
		return report
	}
	start := s.now()
	step := storagedrivers.Step{Name: "unsigned", Title: "request the object without a signature"}
	for _, alias := range private {
		public, err := isPublic(ctx, storage, alias.Key("media-probe-"+rand.Text()+".txt"))
		if public {
			step.Note = noteUnsigned
		}
		if step.Err = err; public || err != nil {
			break
		}
	}
	step.Took = s.now().Sub(start)
	report.Steps = append(report.Steps, step)
	return report
}

// isPublic reports whether the backend serves an object without a signature. It stores the object
// under key and removes it. The result is false for a backend that cannot be asked.
func isPublic(ctx context.Context, storage *storagedrivers.Storage, key string) (public bool, err error) {
	if _, err := storage.Put(ctx, key, strings.NewReader("private"), storagedrivers.PutOptions{}); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, storage.Delete(context.WithoutCancel(ctx), key)) }()
	address, err := storage.Presign(ctx, key, storagedrivers.PresignOptions{Lifetime: time.Minute})
	if err != nil {
		return false, nil // its credentials cannot sign
	}
	address, _, _ = strings.Cut(address, "?")
	ctx, cancel := context.WithTimeout(ctx, unsignedTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	answer, err := http.DefaultTransport.RoundTrip(r) // it follows no redirects
	if err != nil {
		return false, nil // it is not reachable without the settings of the driver
	}
	return answer.StatusCode == http.StatusOK, answer.Body.Close()
}
