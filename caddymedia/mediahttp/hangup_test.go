package mediahttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

// TestHangUp: if the client disconnects during an operation of the token store or of the storage,
// neither has failed, in the log and in the metrics.
func TestHangUp(t *testing.T) {
	t.Parallel()
	upload := multipart + bearer
	body := form(file("a.txt", "text"))
	for name, c := range map[string]struct{ during, path, header, body string }{
		"upload":           {"load", filePath, upload, body},
		"upload on ticket": {"take", filePath, multipart + ticketBearer, body},
		"stored upload":    {"put file/content/a.txt", filePath, upload, body},
		"resumable upload": {"load", resumablePath, tusHeader + aText + "Upload-Length: 4\n", ""},
		"ticket":           {"load", ticketPath, urlencoded + bearer, "kind=file"},
		"stored ticket":    {"save", ticketPath, urlencoded + bearer, "kind=file"},
		"token":            {"save", tokenPath, urlencoded, login(someKey, password).Body},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := new(outcomes)
			s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Observer = seen })
			s.Ticket(t, "kind=file")
			r := s.Request(t, http.MethodPost, c.path, c.header, c.body)
			ctx, hangUp := context.WithCancel(r.Context())
			defer hangUp()
			left := false
			leave := func(op string) bool {
				if op == c.during {
					left = true
					hangUp()
				}
				return op == c.during
			}
			s.Store.Store = leavingStore{s.Store.Store, leave}
			s.Driver.Fail = func(op, key string) error {
				if leave(op + " " + key) {
					return storagedrivers.ErrUnavailable // the connection is cut
				}
				return nil
			}
			s.Handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			s.Driver.Fail = nil
			if !left {
				t.Fatal("the client has not left")
			}
			for _, line := range s.Log.Take() {
				if strings.HasPrefix(line, "ERROR") {
					t.Errorf("logged: %s", line)
				}
			}
			if got := seen.take(); strings.Contains(got, "503") || strings.Contains(got, "unavailable") {
				t.Errorf("observed: %s", got)
			}
		})
	}
}

// leavingStore calls leave before an operation, with its name.
type leavingStore struct {
	tokens.Store
	leave func(op string) bool
}

func (s leavingStore) Get(ctx context.Context, key string) (tokens.Entry, error) {
	s.leave("load")
	return s.Store.Get(ctx, key)
}

func (s leavingStore) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	if old, err := s.Store.Get(ctx, key); err == nil && old.Value == nil {
		s.leave("save")
	} else {
		s.leave("take")
	}
	return s.Store.Update(ctx, key, index, change)
}

// outcomes observes how requests end.
type outcomes struct {
	testservice.Observer

	mu   sync.Mutex
	seen []string
}

func (o *outcomes) note(outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, outcome)
}

// take returns the outcomes so far.
func (o *outcomes) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.seen, ", ")
}

func (o *outcomes) LoggedIn(_ context.Context, _ string, result service.LoginResult) {
	o.note(string(result))
}

func (o *outcomes) TicketIssued(_ context.Context, _ string, result service.TicketResult) {
	o.note(string(result))
}

func (o *outcomes) Failed(_ context.Context, _, status string) { o.note(status) }
