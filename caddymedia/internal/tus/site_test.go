package tus_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/tus"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

const (
	someKey  = "site-one"
	otherKey = "site-two"
	password = "correct horse"

	origin        = "http://example.com"
	resumablePath = "/api/upload/file/resumable"
	imagesPath    = "/api/upload/image/resumable"
)

// Headers of requests, as lines "Name: value". $TOKEN and $OTHER are tokens of the accounts, and
// $TICKET is the last ticket.
const (
	bearer       = "Authorization: Bearer $TOKEN\n"
	ticketBearer = "Authorization: Bearer $TICKET\n"
	tusHeader    = bearer + "Tus-Resumable: 1.0.0\n"
	tusBody      = "Content-Type: application/offset+octet-stream\n"
	aText        = "Upload-Metadata: filename YS50eHQ=\n" // a.txt
	location     = "Location"
)

// noon is the time of all sites, and uploadDay the folder of items that are uploaded then.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const uploadDay = "26-11/20"

// site is a service with several storages on one backend, behind a router for the endpoints. The
// aliases are:
//   - content, exact (names as submitted), replacing (overwrites), dated (folder of the day), cdn (own
//     address)
//   - images: pictures (WebP)
//   - files: one, two, small (10 bytes)
type site struct {
	store   *failingStore
	backend storagedrivers.Driver
	first   *media.Service
	running atomic.Pointer[media.Service] // after a reload
	handler http.Handler
	passed  atomic.Int64 // since noon
	vars    []string     // of the headers in requests: names and values
	change  func(*media.Config)
}

// newSiteWith starts a service with two accounts, until the end of the test. change, if set, changes
// its configuration.
func newSiteWith(t *testing.T, limits media.Limits, change func(*media.Config)) *site {
	t.Helper()
	return newSiteOn(t, memory.New(), limits, change)
}

// newSiteOn is newSiteWith on a backend.
func newSiteOn(t *testing.T, backend storagedrivers.Driver, limits media.Limits, change func(*media.Config)) *site {
	t.Helper()
	s := &site{backend: backend, change: change}
	s.store = &failingStore{Store: tokenmemory.New(s.now)}
	s.first = s.service(t, limits, account(), access.Account{APIKey: otherKey, Aliases: []string{"two"}})
	s.running.Store(s.first)
	s.handler = http.HandlerFunc(s.serve)
	return s
}

// aSite is newSiteWith with the defaults.
func aSite(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, media.Limits{}, nil)
}

func (s *site) now() time.Time { return noon.Add(time.Duration(s.passed.Load())) }

func account(aliases ...string) access.Account {
	return access.Account{APIKey: someKey, Aliases: aliases}
}

// on returns the options of an alias on a storage.
func on(storage string) media.AliasOptions { return media.AliasOptions{Storage: storage} }

// service returns a service with the driver and the token store of the site.
func (s *site) service(t *testing.T, limits media.Limits, accounts ...access.Account) *media.Service {
	t.Helper()
	const root = "/"
	var open sync.WaitGroup // storages, whose driver is shared; the work of a started service ends after Close
	closed := func() error {
		open.Done()
		return nil
	}
	shared := storagedrivers.Options{Location: storagedrivers.Location{Backend: "memory"}}
	config := media.Config{
		Storages: []media.Storage{
			{Name: "main", Driver: s.backend, Options: shared, SubFolderFormat: root},
			{Name: "exact", Driver: s.backend, Options: shared, SubFolderFormat: root, Sanitize: new(false)},
			{Name: "replacing", Driver: s.backend, Options: shared, SubFolderFormat: root, OverwriteStrategy: "overwrite"},
			{Name: "dated", Driver: s.backend, Options: shared},
		},
		Accounts: map[string]*media.Account{}, Tokens: s.store, Limits: limits, Now: s.now,
		Comparer:     tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
		ImageAliases: map[string]*media.ImageAlias{"pictures": {AliasOptions: on("main"), WebP: &media.WebP{}}},
		FileAliases: map[string]*media.FileAlias{
			"one": {AliasOptions: on("main")}, "two": {AliasOptions: on("main")},
			"small": {AliasOptions: media.AliasOptions{Storage: "main", MaxSize: 10}},
		},
	}
	for name, o := range map[string]media.AliasOptions{
		"content": on("main"), "exact": on("exact"), "replacing": on("replacing"), "dated": on("dated"),
		"cdn": {Storage: "main", CDNBase: "https://cdn.example/x"},
	} {
		config.ImageAliases[name], config.FileAliases[name] = &media.ImageAlias{AliasOptions: o}, &media.FileAlias{AliasOptions: o}
	}
	for _, a := range accounts {
		config.Accounts[a.APIKey] = &media.Account{PasswordHash: password, Aliases: a.Aliases}
	}
	if s.change != nil {
		s.change(&config)
	}
	for i := range config.Storages {
		if config.Storages[i].Driver == s.backend {
			open.Add(1)
			config.Storages[i].Options.Close = closed
		}
	}
	running, err := media.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
		open.Wait()
	})
	return running
}

// reload replaces the service as a reload does: the first one is closed, and requests that hold it
// continue.
func (s *site) reload(running *media.Service) {
	s.running.Store(running)
	_ = s.first.Close()
}

// serve routes a request to an endpoint, as package mediahttp does.
func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	running, release, err := s.running.Load().Acquire()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	name, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/upload/"), "/resumable")
	kind, _ := item.KindOf(name)
	client, _, _ := strings.Cut(r.RemoteAddr, ":")
	e := tus.Endpoint{
		Kind: kind, Path: "/api/upload/" + name + "/resumable", BaseURL: origin, Origin: item.OriginHTTP, Client: client,
		Log: slog.New(slog.DiscardHandler),
		Authenticate: func(ctx context.Context, running *service.Service) (access.Caller, *item.Failure) {
			return authenticate(ctx, running, w, r, name)
		},
		Running: func() (*service.Service, func()) {
			next, release, err := s.running.Load().Acquire()
			if err != nil {
				return service.Of(running), func() {}
			}
			return service.Of(next), release
		},
	}
	if err := e.Serve(service.Of(running), w, r, strings.TrimPrefix(id, "/")); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
	}
	release()
	httpx.Linger(w, r, time.Now)
}

// authenticate returns the caller of a request with a token or a ticket.
func authenticate(ctx context.Context, running *service.Service, w http.ResponseWriter, r *http.Request, kind string) (access.Caller, *item.Failure) {
	value := strings.TrimPrefix(strings.Join(r.Header.Values("Authorization"), ","), "Bearer ")
	account, ticket, err := running.Issuer().Verify(ctx, value, "")
	caller := access.Caller{Account: account, Ticket: ticket}
	switch {
	case errors.Is(err, tokens.ErrUnavailable):
		return caller, &item.Failure{Reason: item.Unavailable, Message: "tokens cannot be checked now"}
	case err != nil:
		w.Header().Set("WWW-Authenticate", "Bearer")
		return caller, &item.Failure{Reason: item.Unauthorized, Message: "wrong token"}
	case !caller.AllowsKind(kind):
		return caller, &item.Failure{Reason: item.Forbidden, Message: "the ticket is for another kind"}
	}
	return caller, nil
}

// token returns a new token of an account.
func (s *site) token(t *testing.T, key string) string {
	t.Helper()
	token, _, err := service.Of(s.first).Issuer().Issue(t.Context(), key, password, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// ticket issues a ticket of the account that may use all aliases, by the fields of a form.
func (s *site) ticket(t *testing.T, fields string) string {
	t.Helper()
	form, err := url.ParseQuery(fields)
	number := func(name string, fallback int) int {
		n, _ := strconv.Atoi(cmp.Or(form.Get(name), strconv.Itoa(fallback)))
		return n
	}
	of := access.Ticket{
		Kind: form.Get("kind"), Alias: cmp.Or(form.Get("alias"), item.DefaultAlias), SubFolder: form.Get("sub_folder"),
		Filename: form.Get("filename"), MaxFiles: number("max_files", 1), MaxSize: int64(number("max_size", 0)),
	}
	account, _ := service.Of(s.first).Issuer().Account(someKey)
	text, _, issueErr := service.Of(s.first).Issuer().IssueTicket(t.Context(), account, of, time.Duration(number("expires_in", 900))*time.Second)
	if err := errors.Join(err, issueErr); err != nil {
		t.Fatal(err)
	}
	s.vars = append([]string{"$TICKET", text}, s.vars...)
	return text
}

// withTicket returns a site whose $TICKET has the fields.
func withTicket(t *testing.T, fields string) *site {
	t.Helper()
	s := aSite(t)
	s.ticket(t, fields)
	return s
}

// objects returns all objects of the backend by key.
func (s *site) objects(t *testing.T) map[string]string {
	t.Helper()
	all, opts := map[string]string{}, storagedrivers.ListOptions{}
	for {
		page, err := s.backend.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.Objects {
			all[info.Key], _ = s.stored(t, info.Key)
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			return all
		}
	}
}

// stored returns the content of an object, and false if there is none.
func (s *site) stored(t *testing.T, key string) (string, bool) {
	t.Helper()
	body, _, err := s.backend.Open(t.Context(), key, storagedrivers.Range{})
	if err != nil {
		return "", false
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content), true
}

// reply is a response.
type reply struct {
	status int
	header http.Header
	body   string
}

func (s *site) request(t *testing.T, method, target, header, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if body == "" {
		r.Body = http.NoBody
	}
	for line := range strings.Lines(s.replaced(t, header)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		r.Header.Add(name, strings.TrimPrefix(value, " "))
	}
	return r
}

// replaced returns lines with the values of the variables.
func (s *site) replaced(t *testing.T, lines string) string {
	t.Helper()
	for name, key := range map[string]string{"$TOKEN": someKey, "$OTHER": otherKey} {
		if strings.Contains(lines, name) {
			lines = strings.ReplaceAll(lines, name, s.token(t, key))
		}
	}
	return strings.NewReplacer(s.vars...).Replace(lines)
}

// send sends a request of the protocol and checks what every response promises.
func (s *site) send(t *testing.T, method, address, header, body string) *reply {
	t.Helper()
	return s.roundTrip(t, s.request(t, method, address, tusHeader+header, body))
}

// roundTrip is send of a whole request.
func (s *site) roundTrip(t *testing.T, r *http.Request) *reply {
	t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	got := &reply{w.Code, w.Result().Header, w.Body.String()}
	for name, want := range map[string]string{
		"Tus-Resumable": "1.0.0", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if h := got.header.Get(name); h != want {
			t.Errorf("%s %s: %d: header %s: %q, want %q", r.Method, r.URL.Path, got.status, name, h, want)
		}
	}
	if got.body != "" && got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s: %d: a body of type %q", r.Method, r.URL.Path, got.status, got.header.Get("Content-Type"))
	}
	for name, values := range got.header {
		if strings.ContainsFunc(strings.Join(values, ""), func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Errorf("control characters in %s: %q", name, values)
		}
	}
	return got
}

// metadata returns the header Upload-Metadata of names and values.
func metadata(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, pairs[i]+" "+base64.StdEncoding.EncodeToString([]byte(pairs[i+1])))
	}
	return "Upload-Metadata: " + strings.Join(list, ",") + "\n"
}

// create creates an upload and returns its address.
func (s *site) create(t *testing.T, length int, header string) string {
	t.Helper()
	return s.send(t, http.MethodPost, resumablePath, fmt.Sprintf("Upload-Length: %d\n%s", length, header), "").want(t, 201, "").header.Get(location)
}

// patch adds bytes to an upload.
func (s *site) patch(t *testing.T, address string, offset int, bytes, header string) *reply {
	t.Helper()
	return s.send(t, http.MethodPatch, address, fmt.Sprintf("%sUpload-Offset: %d\n%s", tusBody, offset, header), bytes)
}

// stored is an element of the response to GET of a finished upload.
type stored struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp"`
}

// items returns the items of the response.
func (r *reply) items(t *testing.T) []stored {
	t.Helper()
	var answer struct {
		Success bool     `json:"success"`
		Result  []stored `json:"result"`
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || !answer.Success || len(answer.Result) == 0 {
		t.Fatalf("no result: %d %s: %v", r.status, r.body, err)
	}
	return answer.Result
}

// refused checks the JSON of a refused upload: its status, a part of the first message, and the names
// of the failing files.
func (r *reply) refused(t *testing.T, status int, has string, names ...string) {
	t.Helper()
	var answer struct {
		Success bool `json:"success"`
		Errors  []struct {
			Message  string `json:"message"`
			Filename string `json:"filename"`
		} `json:"errors"`
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.status != status || answer.Success || len(answer.Errors) == 0 {
		t.Fatalf("status %d, want %d: %s: %v", r.status, status, r.body, err)
	}
	if first := answer.Errors[0]; first.Message == "" || !strings.Contains(first.Message, has) || names != nil && !slices.Equal(names, []string{first.Filename}) {
		t.Errorf("errors %+v, want %q in the first one, of %q", answer.Errors, has, names)
	}
}

// failingStore can be set to fail.
type failingStore struct {
	tokens.Store
	fails, noTakes atomic.Bool
	ended          atomic.Bool // every ticket ends before it is counted on
}

// Close does nothing, because several services share the store.
func (*failingStore) Close() error { return nil }

// Update implements [tokens.Store].
func (s *failingStore) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	return s.Store.Update(ctx, key, index, func(old tokens.Entry) (tokens.Entry, error) {
		switch isTaken := old.Value != nil && strings.HasPrefix(key, "token/"); {
		case isTaken && s.noTakes.Load():
			return old, tokens.ErrUnavailable
		case isTaken && s.ended.Load():
			old = tokens.Entry{}
		}
		return change(old)
	})
}

// Get implements [tokens.Store].
func (s *failingStore) Get(ctx context.Context, key string) (tokens.Entry, error) {
	if s.fails.Load() {
		return tokens.Entry{}, tokens.ErrUnavailable
	}
	return s.Store.Get(ctx, key)
}

// meanwhile is a body that calls between when half of it is read.
type meanwhile struct {
	first, second io.Reader
	between       func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	n, err := m.first.Read(p)
	if err != io.EOF {
		return n, err
	}
	if m.between != nil {
		m.between()
		m.between = nil
	}
	return m.second.Read(p)
}

func pngOf(width, height int) string {
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range m.Pix {
		m.Pix[i] = uint8(i % 2)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}

// want checks the status and lines "Name: value" of the header; one without a value must be missing.
func (r *reply) want(t *testing.T, status int, header string) *reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %.300q", r.status, status, r.body)
	}
	for line := range strings.Lines(header) {
		name, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if got := strings.Join(r.header.Values(name), ", "); got != strings.TrimSpace(want) {
			t.Errorf("header %s: %.200q, want %q", name, got, strings.TrimSpace(want))
		}
	}
	return r
}

// offset checks the offset of an upload.
func (s *site) offset(t *testing.T, address string, want int) *reply {
	t.Helper()
	return s.send(t, http.MethodHead, address, "", "").want(t, 200, fmt.Sprintf("Upload-Offset: %d\n", want))
}

// part creates a partial upload with bytes.
func (s *site) part(t *testing.T, bytes string) string {
	t.Helper()
	address := s.create(t, len(bytes), "Upload-Concat: partial\n")
	s.patch(t, address, 0, bytes, "").want(t, 204, fmt.Sprintf("Upload-Offset: %d\n", len(bytes)))
	return address
}

// final requests the concatenation of parts.
func (s *site) final(t *testing.T, header string, parts ...string) *reply {
	t.Helper()
	return s.send(t, http.MethodPost, resumablePath, "Upload-Concat: final;"+strings.Join(parts, " ")+"\n"+header, "")
}

func sha1Of(bytes string) string {
	sum := sha1.Sum([]byte(bytes))
	return "Upload-Checksum: sha1 " + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
}

// itemIs checks the content of the item of aText.
func (s *site) itemIs(t *testing.T, want string) {
	t.Helper()
	if got, ok := s.stored(t, "file/content/a.txt"); !ok || got != want {
		t.Errorf("the item is %.100q, %t, want %q", got, ok, want)
	}
}

// items returns the stored items by key.
func (s *site) items(t *testing.T) map[string]string {
	t.Helper()
	items := s.objects(t)
	maps.DeleteFunc(items, func(key, _ string) bool { return strings.HasPrefix(key, resumable.Folder+"/") })
	return items
}

// awaitOutcome waits for the end of an upload, at most a minute.
func awaitOutcome(t *testing.T, u *resumable.Upload) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ; u.Outcome == nil; time.Sleep(10 * time.Millisecond) {
		if err := cmp.Or(ctx.Err(), u.Reload(ctx)); err != nil {
			t.Fatalf("the upload is not finished: %v", err)
		}
	}
}

// rule is a demand of the protocol, in the words of its specification, or one of the service.
type rule struct {
	text   string
	ticket string // the fields of $TICKET; empty for none
	check  func(*testing.T, *site)
}

// runRules checks each rule on its own sites, in parallel.
func runRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, c := range rules {
		onEach(t, c.text, func(t *testing.T, b backend) {
			s := b.site(t, nil)
			if c.ticket != "" {
				s.ticket(t, c.ticket)
			}
			c.check(t, s)
		})
	}
}
