package cache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Policy sets how objects of one driver are cached. Zero values are defaults.
type Policy struct {
	// Block is the number of bytes that are fetched and stored together, from 64 KiB to 16 MiB; 0
	// is 1 MiB.
	Block int64
	// Immutable is set if stored objects are never replaced. Otherwise an object without an ETag is
	// only cached some seconds after it was stored, because its ModTime identifies it.
	Immutable bool
	// Revalidate is how long the backend is not asked whether an object has changed. 0: it is asked
	// at each request.
	Revalidate time.Duration
	// StaleIfError is how much longer an immutable object is served if the backend is unavailable.
	StaleIfError time.Duration
	// FillOnUpload stores the bytes of an upload.
	FillOnUpload bool
	// Skip reports whether the object under a key is not cached. Nil: all are.
	Skip func(key string) bool
	// Close is called in place of the driver's Close, for storages that share a driver.
	Close func() error
}

const (
	minBlock     = 64 << 10
	maxBlock     = maxPayload
	defaultBlock = 1 << 20

	// openAttempts bounds how often an object may be replaced while it is opened.
	openAttempts = 4

	// minAge is the age of an object beyond which no other one gets its ModTime, if that is the
	// only difference; minAgeMinute if the time may be one of whole minutes.
	minAge       = 10 * time.Second
	minAgeMinute = 70 * time.Second

	// staleTimeout bounds asking the backend about an object that can be served without an answer.
	// After a failure the next attempt is made after retryDelay.
	staleTimeout = 5 * time.Second
	retryDelay   = 5 * time.Second
)

// errUncacheable means that an object has no generation that can be identified.
var errUncacheable = errors.New("the object cannot be cached")

// cached is a driver behind a store. It is no [storagedrivers.Stager] and no
// [storagedrivers.Appender]: only local drivers are, and they need no cache.
type cached struct {
	storagedrivers.Driver // of the backend

	store        *Store
	location     string
	policy       Policy
	now          func() time.Time
	circuit      storagedrivers.Breaker
	staleTimeout time.Duration
	down         atomic.Int64   // Unix nanoseconds of the last failure to ask the backend
	running      sync.WaitGroup // flights

	mu      sync.Mutex
	flights map[question]*flight // those that are running
	parked  map[question]*flight // those that have left a stream, by the next question
	orphans int                  // flights without readers
}

// New returns a driver that reads objects from store, and fetches missing blocks from driver.
// location distinguishes backends that use one folder. The returned driver is a
// [storagedrivers.Presigner] if driver is one. Its other optional methods return
// [errors.ErrUnsupported] if driver has none. Its Close closes driver and not store.
//
// Its readers fetch blocks as they are read. A reader of an object that is replaced or deleted
// fails with [storagedrivers.ErrChanged] at the first block that is not stored. So the driver has
// no atomic Replace.
func New(driver storagedrivers.Driver, store *Store, location string, p Policy) storagedrivers.Driver {
	if p.Block == 0 {
		p.Block = defaultBlock
	}
	p.Block = min(max(p.Block, minBlock), maxBlock)
	if p.Skip == nil {
		p.Skip = func(string) bool { return false }
	}
	if p.Close == nil {
		p.Close = driver.Close
	}
	d := &cached{
		Driver: driver, store: store, location: location, policy: p, now: store.now, staleTimeout: staleTimeout,
		flights: map[question]*flight{}, parked: map[question]*flight{},
	}
	if signer, ok := driver.(storagedrivers.Presigner); ok {
		return struct {
			*cached
			storagedrivers.Presigner
		}{d, signer}
	}
	return d
}

// Put stores all of r. The object under key is read from the backend from then on.
func (d *cached) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (info storagedrivers.Info, err error) {
	version, alone := d.change(key, func() { info, err = d.Driver.Put(ctx, key, r, opts) })
	if err == nil && alone && d.policy.FillOnUpload && opts.Source == nil {
		d.fill(ctx, r, info, version)
	}
	return info, err
}

// Delete removes an object.
func (d *cached) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) (err error) {
	d.change(key, func() { err = d.Driver.Delete(ctx, key, opts) })
	return err
}

// Rename is that of the driver, which may be a [storagedrivers.Renamer].
func (d *cached) Rename(ctx context.Context, source storagedrivers.Info, to string) (err error) {
	renamer, ok := d.Driver.(storagedrivers.Renamer)
	if !ok {
		return errors.ErrUnsupported
	}
	d.change(source.Key, func() {
		d.change(to, func() { err = renamer.Rename(ctx, source, to) })
	})
	return err
}

// change calls f, which may replace or remove an object. It returns the version of the object after
// that. Unless alone is set, another caller may have changed it meanwhile, or it is not cached.
func (d *cached) change(key string, f func()) (version uint64, alone bool) {
	if d.policy.Skip(key) {
		f()
		return 0, false
	}
	id := d.infoID(key)
	before := d.store.invalidate(id)
	f()
	version = d.store.invalidate(id)
	return version, version == before+1
}

// fill stores the blocks of an uploaded object. A failure only means that they are fetched later.
func (d *cached) fill(ctx context.Context, r io.ReadSeeker, info storagedrivers.Info, version uint64) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return
	}
	o, err := d.accept(info.Key, version, info)
	if err != nil {
		return
	}
	slot, err := d.store.acquire(ctx, min(d.policy.Block, info.Size))
	if err != nil {
		return
	}
	defer slot.Release()
	block := make([]byte, slot.Units())
	for number := int64(0); ; number++ {
		id, size := o.blockAt(number)
		if size == 0 || ctx.Err() != nil {
			return
		}
		if _, err := io.ReadFull(r, block[:size]); err != nil || !d.store.put(id, block[:size]) {
			return
		}
	}
}

// Open returns a reader whose first bytes have arrived. It asks the backend if the object is not
// fresh, and fetches the first block if that is not stored.
func (d *cached) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if rng.Offset < 0 || rng.Length < 0 || d.bypassed(ctx, key) {
		return d.Driver.Open(ctx, key, rng)
	}
	for attempt := 1; ; attempt++ {
		r := &reader{ctx: ctx, d: d, key: key, offset: rng.Offset}
		info, err := r.open(rng)
		if err == nil {
			return r, info, nil
		}
		_ = r.Close() // it has read nothing
		switch {
		case errors.Is(err, errUncacheable):
			return d.Driver.Open(ctx, key, rng)
		case !errors.Is(err, storagedrivers.ErrChanged):
			return nil, storagedrivers.Info{}, err
		case attempt == openAttempts:
			return nil, storagedrivers.Info{}, errors.Join(storagedrivers.ErrUnavailable, err)
		}
	}
}

// bypassed reports whether an object is not read through the store.
func (d *cached) bypassed(ctx context.Context, key string) bool {
	return ctx.Err() != nil || d.policy.Skip(key) || storagedrivers.IsUncached(ctx) || !d.store.ready()
}

// Stat returns the Info of an object.
func (d *cached) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	if d.bypassed(ctx, key) {
		return d.Driver.Stat(ctx, key)
	}
	r := &reader{ctx: ctx, d: d, key: key}
	defer r.Close()
	o, err := d.lookUp(r, false)
	if err != nil && !errors.Is(err, errUncacheable) {
		return storagedrivers.Info{}, err
	}
	return o.Info, nil
}

// Sweep sweeps the backend, if the driver can.
func (d *cached) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	sweeper, ok := d.Driver.(storagedrivers.Sweeper)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sweeper.Sweep(ctx, opts)
}

// Space asks the backend, if it reports its space.
func (d *cached) Space(ctx context.Context) (storagedrivers.Space, error) {
	reporter, ok := d.Driver.(storagedrivers.SpaceReporter)
	if !ok {
		return storagedrivers.Space{}, errors.ErrUnsupported
	}
	return reporter.Space(ctx)
}

// Features returns the guarantees of the backend without those that readers of blocks lack.
func (d *cached) Features() storagedrivers.Features {
	f := d.Driver.Features()
	f.Replace, f.Seek, f.Local, f.Cached = storagedrivers.BestEffort, false, false, true
	return f
}

// Close ends the flights of readers that have left, and closes the driver.
func (d *cached) Close() error {
	d.mu.Lock()
	for _, f := range d.flights {
		f.stream.cancel()
	}
	d.mu.Unlock()
	d.running.Wait()
	return d.policy.Close()
}

// record is the stored description of an object.
type record struct {
	storagedrivers.Info
	// Checked is when the backend was asked, and Run the store's run in which it was.
	Checked time.Time
	Run     uint64
	// Salt distinguishes an object without an ETag from one that had its size and time before it
	// was replaced or deleted.
	Salt string `json:",omitempty"`
}

// object is a generation of an object, in blocks.
type object struct {
	record

	generation identity // which those of the blocks contain
	block      int64    // the size of a block
}

// object returns the object that a record describes.
func (d *cached) object(rec record) *object {
	return &object{rec, newIdentity("object", d.location, rec.Key, strconv.FormatInt(rec.Size, 10), rec.ETag,
		rec.ModTime.UTC().Format(time.RFC3339Nano), rec.Salt, strconv.FormatInt(d.policy.Block, 10)), d.policy.Block}
}

// size returns the number of bytes of a block.
func (o *object) size(number int64) int {
	return int(max(min(o.block, o.Size-number*o.block), 0))
}

// blockAt returns the identity and the size of a block.
func (o *object) blockAt(number int64) (identity, int) {
	return newIdentity("block", string(o.generation[:]), strconv.FormatInt(number, 10)), o.size(number)
}

// known returns the object under key as it was when the backend was last asked, or nil.
func (d *cached) known(key string) *object {
	rec, ok := d.store.record(d.infoID(key))
	if !ok {
		return nil
	}
	return d.object(rec)
}

// age returns the time since the backend was asked. It is never negative.
func (d *cached) age(o *object) time.Duration { return max(d.now().Sub(o.Checked), 0) }

// fresh reports whether the backend need not be asked. A record of an earlier run is never fresh,
// because other processes may have changed the object meanwhile.
func (d *cached) fresh(o *object) bool {
	return o.Run == d.store.run.Load() && d.age(o) < d.policy.Revalidate
}

// cacheable reports whether info identifies a generation.
func (d *cached) cacheable(info storagedrivers.Info) bool {
	if d.policy.Immutable || info.ETag != "" {
		return true
	}
	margin := minAge
	if info.ModTime.Truncate(time.Minute).Equal(info.ModTime) {
		margin = minAgeMinute
	}
	return !info.ModTime.IsZero() && d.now().Sub(info.ModTime) > margin
}

// lookUp returns an object: as it is known while that is fresh, otherwise as the backend describes
// it. If opens is set and the first block is not stored, one request fetches both. The error is
// errUncacheable, with an object, if that must be read from the backend.
func (d *cached) lookUp(r *reader, opens bool) (*object, error) {
	r.version = d.store.version(d.infoID(r.key)) // before the record is loaded
	o := d.known(r.key)
	if o != nil && d.fresh(o) {
		return o, nil
	}
	number := r.offset / d.policy.Block
	if opens && (o == nil || !d.store.has(o.blockAt(number))) {
		// The answer to a question of another reader may be too old.
		if o, asked, err := r.ask(number); err != nil || asked || d.fresh(o) {
			return o, err
		}
	}
	if d.policy.Revalidate == 0 { // it always is
		return d.ask(r.ctx, r.key, r.version)
	}
	o, _, err := r.ask(noBlock)
	return o, err
}

// ask asks the backend. An immutable object that is known serves for a while if there is no answer.
func (d *cached) ask(ctx context.Context, key string, version uint64) (*object, error) {
	known := d.known(key)
	lasts := known != nil && d.policy.Immutable && d.age(known) < d.policy.Revalidate+d.policy.StaleIfError
	limited, cancel := ctx, context.CancelFunc(func() {})
	if lasts {
		if d.now().Sub(time.Unix(0, d.down.Load())) < retryDelay {
			return known, nil
		}
		limited, cancel = context.WithTimeout(ctx, d.staleTimeout)
	}
	defer cancel()
	var info storagedrivers.Info
	err := d.circuit.Do(limited, d.now, func(ctx context.Context) (err error) {
		info, err = d.Driver.Stat(ctx, key)
		return err
	})
	switch {
	case err == nil:
		return d.accept(key, version, info)
	case lasts && ctx.Err() == nil && (errors.Is(err, storagedrivers.ErrUnavailable) || limited.Err() != nil):
		d.down.Store(d.now().UnixNano())
		return known, nil
	case errors.Is(err, fs.ErrNotExist):
		d.forget(key)
	}
	return nil, err
}

// accept returns the object that the backend describes in answer to a question at a version, and
// stores its record. Concurrent answers to one version have one salt, so that their readers share
// blocks. The error is errUncacheable, with the object, if nothing identifies its generation.
func (d *cached) accept(key string, version uint64, info storagedrivers.Info) (*object, error) {
	rec := record{Info: info, Checked: d.now(), Run: d.store.run.Load()}
	if !d.cacheable(info) {
		return d.object(rec), errUncacheable
	}
	known := d.known(key)
	same := known != nil && info.Same(known.Info)
	switch {
	case info.ETag != "":
	case same:
		rec.Salt = known.Salt
	default:
		rec.Salt = strconv.FormatUint(rec.Run, 36) + "." + strconv.FormatUint(version, 36)
	}
	if !same || d.policy.Revalidate > 0 || d.policy.StaleIfError > 0 {
		d.store.putRecord(d.infoID(key), version, rec)
	}
	return d.object(rec), nil
}

// forget removes the record of an object that the backend no longer has.
func (d *cached) forget(key string) {
	if d.known(key) != nil {
		d.store.invalidate(d.infoID(key))
	}
}

// infoID returns the identity of the record of an object.
func (d *cached) infoID(key string) identity { return newIdentity("info", d.location, key) }

// newIdentity returns the hash of fields.
func newIdentity(fields ...string) identity {
	b := make([]byte, 0, 256) // enough for most, without an allocation
	for _, field := range fields {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	sum := sha256.Sum256(b)
	return identity(sum[:16])
}
