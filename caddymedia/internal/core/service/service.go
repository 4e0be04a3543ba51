// Package service is the running service: storages, aliases, accounts, limits and health, with the
// uploader and the issuer of tokens. It knows neither options nor HTTP: package media makes it of a
// configuration, and package mediahttp serves it. Begin with [New] and [Service.Start].
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/fetch"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// ErrClosed means that a service is closed.
var ErrClosed = errors.New("the media service is closed")

// Parts are what a service consists of. They are complete and checked.
type Parts struct {
	Storages []Storage
	// Aliases returns the aliases, on the given storages.
	Aliases   func(storages map[string]*storagedrivers.Storage) (Aliases, error)
	Limits    Limits
	Resumable Resumable
	Downloads fetch.Options

	// Accounts that may log in, and those of users of another login; nil for none.
	Accounts      []access.Account
	Trust         *Trust
	TokenLifetime time.Duration // 0 for the default
	Tokens        tokens.Store
	Comparer      tokens.Comparer
	FakeHash      []byte
	// SigningKeys sign addresses; nil for a key in the token store.
	SigningKeys [][]byte
	// Origins of pages on other sites; nil for none.
	Origins *Origins

	HealthInterval time.Duration // 0 for the default
	Process        *Process
	Client         func(context.Context) string
	Previous       *Service
	Observer       Observer
	Log            *slog.Logger
	Now            func() time.Time
}

// Aliases are aliases by kind and name.
type Aliases = map[item.Kind]map[string]*item.Alias

// Storage is a storage that is to be opened.
type Storage struct {
	Name    string
	Driver  storagedrivers.Driver
	Options storagedrivers.Options
	// Settings identify the driver's settings. A service takes over the state of a storage that has
	// the same name and settings in the previous one.
	Settings string
}

// Limits bound the work that strangers can cause.
type Limits struct {
	Requests      upload.Limits
	Images        render.Limits
	NeedsEncoder  bool  // for variants or renditions
	MaxBody       int64 // in bytes
	MaxUploads    int   // of an account at once
	MaxUploadTime time.Duration
	MaxOpenItems  int // of a client address at once
	Logins        LoginLimits
}

// Resumable are the options of resumable uploads; see [resumable.Store]. If Off is set, those of an
// earlier configuration end.
type Resumable struct {
	Off      bool
	Storage  string // of unfinished uploads; empty for that of the alias
	Expires  time.Duration
	MaxOpen  int
	MaxBytes int64 // 0 for a multiple of the largest item
}

// The largest sum of the lengths of unfinished uploads, as multiples of the largest MaxSize of an
// alias.
const (
	defaultLargestUploads = 32
	minLargestUploads     = 2
)

// within sets the default of MaxBytes, or returns an error if it is too small. largest is the
// largest MaxSize of an alias.
func (r *Resumable) within(largest int64) error {
	if r.MaxBytes > 0 && r.MaxBytes/minLargestUploads < largest {
		return fmt.Errorf("resumable: max_bytes is less than twice the largest max_size of an alias, %s", bytesize.Format(largest))
	}
	r.MaxBytes = cmp.Or(r.MaxBytes, defaultLargestUploads*min(largest, math.MaxInt64/defaultLargestUploads))
	return nil
}

// Service is the running service. It is safe for concurrent use.
type Service struct {
	storages   map[string]*storagedrivers.Storage
	uploader   *upload.Uploader
	store      tokens.Store
	issuer     *access.Issuer
	comparer   tokens.Comparer
	fakeHash   []byte
	logins     *logins
	limits     Limits
	process    *Process
	free       []func() // return what is of the process
	remote     *fetch.Client
	resumable  Resumable
	uploads    *resumable.Store
	opened     map[string]chan struct{} // by storage, after an upload was created
	isFirst    bool                     // it replaces no other service
	origins    *Origins
	trust      *Trust
	signing    *signingKeys
	client     func(context.Context) string
	health     *health
	observer   Observer
	log        *slog.Logger
	now        func() time.Time
	references *locks.References
}

// New returns a service, which the caller must close. It uses neither the network nor a storage. On
// an error the drivers and the token store stay open.
func New(parts Parts) (*Service, error) {
	s := &Service{
		storages: map[string]*storagedrivers.Storage{}, opened: map[string]chan struct{}{}, store: parts.Tokens, comparer: parts.Comparer,
		fakeHash: parts.FakeHash, limits: parts.Limits, process: parts.Process, resumable: parts.Resumable, origins: parts.Origins,
		trust: parts.Trust, client: parts.Client, observer: parts.Observer, log: parts.Log, now: parts.Now, isFirst: parts.Previous == nil,
	}
	s.setDefaults()
	s.health = newHealth(parts.HealthInterval, s.now)
	for _, storage := range parts.Storages {
		if err := s.open(storage); err != nil {
			return nil, err
		}
	}
	err := s.assemble(&parts)
	if err != nil {
		s.freeAll()
		return nil, err
	}
	s.signing = newSigningKeys(parts.SigningKeys, s.store, s.now)
	s.uploads = s.newUploads()
	if parts.Previous != nil {
		s.health.inherit(parts.Previous.health)
	}
	s.remote = fetch.New(parts.Downloads)
	s.references = locks.NewReferences(s.closeAll)
	return s, nil
}

func (s *Service) setDefaults() {
	if s.observer == nil {
		s.observer = NopObserver{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now //nolint:forbidigo // the clock's one default
	}
	if s.process == nil {
		s.process = NewProcess()
	}
	if s.client == nil {
		s.client = func(context.Context) string { return "" }
	}
}

// open adds a storage.
func (s *Service) open(storage Storage) error {
	name := storage.Name
	if s.storages[name] != nil {
		return fmt.Errorf("storage %q is there twice", name)
	}
	failed := s.health.add(name, storage.Settings)
	storage.Options.Observe = func(op string, took time.Duration, err error) {
		s.observer.StorageOperation(name, op, took, err)
		if op != "check" && op != "space" && storagedrivers.Fault(op, err) { // these two are made by a check
			failed()
		}
	}
	s.storages[name] = storagedrivers.New(name, storage.Driver, storage.Options)
	return nil
}

// assemble makes the uploader and the issuer.
func (s *Service) assemble(parts *Parts) error {
	images, err := s.sharedImages()
	if err != nil {
		return err
	}
	s.uploader = &upload.Uploader{
		Limits: s.limits.Requests, Staging: s.process.staging, Now: s.now, Observer: s.observer, Log: s.log,
		Derived: &derived.Maker{Images: images, Memory: program.derived, Now: s.now, Observer: s.observer},
	}
	if s.uploader.Aliases, err = parts.Aliases(s.storages); err != nil {
		return err
	}
	if s.issuer, err = s.newIssuer(parts); err != nil {
		return err
	}
	largest := int64(0)
	for _, alias := range s.Aliases() {
		alias.Locks = &program.items
		largest = max(largest, alias.MaxSize)
	}
	return s.resumable.within(largest)
}

// Acquire keeps the service open until release is called. The error is ErrClosed.
func (s *Service) Acquire() (service *Service, release func(), err error) {
	if !s.references.Acquire() {
		return nil, nil, ErrClosed
	}
	return s, s.release, nil
}

func (s *Service) release() {
	if err := s.references.Release(); err != nil {
		s.log.Error("closing the service after its last request", "error", err)
	}
}

// Close ends the checks, and Acquire fails from then on. Storages and the token store are closed
// when the last reference is released. Further calls do nothing.
func (s *Service) Close() error {
	s.health.cancel()
	return s.references.Close()
}

func (s *Service) closeAll() error {
	s.remote.Close()
	errs := make([]error, 0, len(s.storages)+1)
	for _, storage := range s.storages {
		errs = append(errs, storage.Close())
	}
	errs = append(errs, s.store.Close())
	s.freeAll()
	return errors.Join(errs...)
}

func (s *Service) freeAll() {
	for _, free := range s.free {
		free()
	}
}

// Of returns the service of a *media.Service, which does not show it to other modules. Package
// media sets it.
var Of func(public any) *Service

// Uploader returns the uploader, which stores, deletes and maintains items.
func (s *Service) Uploader() *upload.Uploader { return s.uploader }

// Issuer returns the issuer of tokens, which also verifies them.
func (s *Service) Issuer() *access.Issuer { return s.issuer }

// Limits returns the limits.
func (s *Service) Limits() Limits { return s.limits }

// Resumable returns the options of resumable uploads.
func (s *Service) Resumable() Resumable { return s.resumable }

// Observer returns the observer; it is never nil.
func (s *Service) Observer() Observer { return s.observer }

// Origins returns the origins of the pages that may use the service in a browser; nil for none.
func (s *Service) Origins() *Origins { return s.origins }

// Log returns the log, for what callers do not see.
func (s *Service) Log() *slog.Logger { return s.log }

// ClientOf returns the address of the client for whom Go code stores items, from the context of its
// call.
func (s *Service) ClientOf(ctx context.Context) string { return s.client(ctx) }

// Storage returns the storage of a name, and false if there is none.
func (s *Service) Storage(name string) (*storagedrivers.Storage, bool) {
	storage, ok := s.storages[name]
	return storage, ok
}

// Alias returns the alias of a kind and name, and false if there is none.
func (s *Service) Alias(kind item.Kind, name string) (*item.Alias, bool) {
	alias, ok := s.uploader.Aliases[kind][name]
	return alias, ok
}

// Aliases returns the aliases, images first, sorted by name.
func (s *Service) Aliases() []*item.Alias {
	var all []*item.Alias
	for _, kind := range []item.Kind{item.Image, item.File} {
		of := s.uploader.Aliases[kind]
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(all, of[name])
		}
	}
	return all
}

// ImageSizes returns the sizes of a stored image, first, and of its renditions, and the value of a
// srcset attribute with them. The error satisfies errors.Is with fs.ErrNotExist for a file, and for
// an image that does not exist.
func (s *Service) ImageSizes(ctx context.Context, alias *item.Alias, filename string) (sizes []derived.Size, srcset string, err error) {
	if alias.Kind != item.Image {
		return nil, "", fs.ErrNotExist
	}
	sizes, err = s.uploader.Derived.Sizes(ctx, alias, "", filename)
	if err != nil {
		return nil, "", err
	}
	return sizes, derived.Srcset(sizes), nil
}

// LoginResult is the outcome of a request for a token.
type LoginResult string

// Outcomes of a request for a token.
const (
	LoginOK          LoginResult = "ok"
	LoginRefused     LoginResult = "refused"     // a wrong API key or password
	LoginThrottled   LoginResult = "throttled"   // after too many attempts
	LoginUnavailable LoginResult = "unavailable" // the token store is unreachable
	LoginFailed      LoginResult = "failed"      // by a fault of the service itself
)

// LoginResults returns all outcomes of a request for a token.
func LoginResults() []LoginResult {
	return []LoginResult{LoginOK, LoginRefused, LoginThrottled, LoginUnavailable, LoginFailed}
}

// TicketResult is the outcome of a request for a ticket.
type TicketResult string

// Outcomes of a request for a ticket.
const (
	TicketOK          TicketResult = "ok"
	TicketRefused     TicketResult = "refused"     // a wrong token, or a ticket that it cannot have
	TicketUnavailable TicketResult = "unavailable" // the token store is unreachable
	TicketFailed      TicketResult = "failed"      // by a fault of the service itself
)

// TicketResults returns all outcomes of a request for a ticket.
func TicketResults() []TicketResult {
	return []TicketResult{TicketOK, TicketRefused, TicketUnavailable, TicketFailed}
}

// Observer receives the events of a service. Its methods may be called concurrently. Those with a
// context are called in the goroutine of a request and must return soon.
type Observer interface {
	upload.Observer
	// LoggedIn is called with the outcome of a request for a token. The API key is empty unless it is
	// LoginOK.
	LoggedIn(ctx context.Context, apiKey string, result LoginResult)
	// TicketIssued is called with the outcome of a request for a ticket. The API key is empty unless
	// it is TicketOK.
	TicketIssued(ctx context.Context, apiKey string, result TicketResult)
	// Signed is called with the number of addresses that were signed for an account.
	Signed(ctx context.Context, apiKey string, addresses int)
	// DeletionEnded is called after a request to delete a set of items, and for a refused one to
	// delete items. Its items are also reported one by one.
	DeletionEnded(ctx context.Context, deletion Deletion)
	// Failed is called for a request that was refused or failed. The endpoint is "token", "ticket",
	// "sign", "image", "file", "items", "s3" or "static". The status is that of the response, or
	// "broken" or "aborted".
	Failed(ctx context.Context, endpoint, status string)
	// ResumableEvent is called when a resumable upload is created or ends.
	ResumableEvent(kind item.Kind, event resumable.Event)
	// ResumableReceived is called after a request that added bytes to a resumable upload. resumed
	// means that the upload had some before.
	ResumableReceived(kind item.Kind, bytes int64, resumed bool)
	// ResumableOpen is called with the unfinished resumable uploads of a storage, about twice a minute
	// if there are any.
	ResumableOpen(storage string, open resumable.Open)
	// TrashHeld is called with what the trash of an alias holds, after each sweep of it.
	TrashHeld(alias *item.Alias, in Count)
	// Terminated is called after a resumable upload was ended on request of an actor, or could not be.
	Terminated(ctx context.Context, upload *resumable.Record, actor item.Actor, err error)
	// Requested is called when a client requests an item, which may not exist.
	Requested(ctx context.Context, alias *item.Alias, filename string)
	// Served is called with the number of bytes of an item that were sent.
	Served(ctx context.Context, alias *item.Alias, bytes int64)
	// StorageOperation is called after every operation of a storage, with its name as in
	// storagedrivers.OpError, its duration and its error.
	StorageOperation(storage, op string, took time.Duration, err error)
	// StorageChecked is called after every check of a storage. changed reports whether the storage
	// became reachable or unreachable.
	StorageChecked(storage string, health Health, changed bool)
}

// NopObserver is an [Observer] that does nothing.
type NopObserver struct{ upload.NopObserver }

// LoggedIn implements [Observer].
func (NopObserver) LoggedIn(context.Context, string, LoginResult) {}

// TicketIssued implements [Observer].
func (NopObserver) TicketIssued(context.Context, string, TicketResult) {}

// Signed implements [Observer].
func (NopObserver) Signed(context.Context, string, int) {}

// DeletionEnded implements [Observer].
func (NopObserver) DeletionEnded(context.Context, Deletion) {}

// Failed implements [Observer].
func (NopObserver) Failed(context.Context, string, string) {}

// ResumableEvent implements [Observer].
func (NopObserver) ResumableEvent(item.Kind, resumable.Event) {}

// ResumableReceived implements [Observer].
func (NopObserver) ResumableReceived(item.Kind, int64, bool) {}

// ResumableOpen implements [Observer].
func (NopObserver) ResumableOpen(string, resumable.Open) {}

// TrashHeld implements [Observer].
func (NopObserver) TrashHeld(*item.Alias, Count) {}

// Terminated implements [Observer].
func (NopObserver) Terminated(context.Context, *resumable.Record, item.Actor, error) {}

// Requested implements [Observer].
func (NopObserver) Requested(context.Context, *item.Alias, string) {}

// Served implements [Observer].
func (NopObserver) Served(context.Context, *item.Alias, int64) {}

// StorageOperation implements [Observer].
func (NopObserver) StorageOperation(string, string, time.Duration, error) {}

// StorageChecked implements [Observer].
func (NopObserver) StorageChecked(string, Health, bool) {}
