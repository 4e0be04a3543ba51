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
	"github.com/caddymedia/media/storagedrivers/internal/guard"
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
	inner        storagedrivers.Driver
	store        *Store
	location     string
	policy       Policy
	now          func() time.Time
	circuit      storagedrivers.Breaker
	staleTimeout time.Duration
	down         atomic.Int64   // Unix nanoseconds of the last failure to ask the backend
	running      sync.WaitGroup // fetches

	mu          sync.Mutex
	generations map[identity]*generation
	lookups     map[lookupKey]*lookup
	orphans     int // flights without readers
}

// New returns a driver that reads objects from store, and fetches missing blocks from driver.
// location distinguishes backends that use one folder. The returned driver is a
// [storagedrivers.Presigner] or [storagedrivers.Sweeper] if driver is one. Its Close closes driver and
// not store.
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
		inner: driver, store: store, location: location, policy: p, now: store.now, staleTimeout: staleTimeout,
		generations: map[identity]*generation{}, lookups: map[lookupKey]*lookup{},
	}
	signer, signs := driver.(storagedrivers.Presigner)
	sweeper, sweeps := driver.(storagedrivers.Sweeper)
	switch {
	case signs && sweeps:
		return struct {
			*cached
			storagedrivers.Presigner
			storagedrivers.Sweeper
		}{d, signer, sweeper}
	case signs:
		return struct {
			*cached
			storagedrivers.Presigner
		}{d, signer}
	case sweeps:
		return struct {
			*cached
			storagedrivers.Sweeper
		}{d, sweeper}
	}
	return d
}

// Put stores all of r. The object under key is read from the backend from then on.
func (d *cached) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if d.policy.Skip(key) {
		return d.inner.Put(ctx, key, r, opts)
	}
	id := d.infoID(key)
	before := d.store.invalidate(id)
	info, err := d.inner.Put(ctx, key, r, opts)
	version := d.store.invalidate(id)
	alone := version == before+1 // otherwise another one may have replaced or deleted the object since
	if err == nil && alone && d.policy.FillOnUpload && opts.Source == nil && d.cacheable(info) {
		d.fill(ctx, r, info, version)
	}
	return info, err
}

// fill stores the blocks of an uploaded object. A failure only means that they are fetched later.
func (d *cached) fill(ctx context.Context, r io.ReadSeeker, info storagedrivers.Info, version uint64) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return
	}
	rec := d.record(info, version, record{})
	slot, err := d.store.acquire(ctx, min(d.policy.Block, info.Size))
	if err != nil {
		return
	}
	defer slot.Release()
	id, block := d.generationID(rec), make([]byte, slot.Units())
	for number, left := int64(0), info.Size; left > 0; number++ {
		block = block[:min(d.policy.Block, left)]
		if _, err := io.ReadFull(r, block); err != nil || ctx.Err() != nil || !d.store.put(blockID(id, number), block) {
			return
		}
		left -= int64(len(block))
	}
	d.store.putRecord(d.infoID(info.Key), version, rec)
}

// Open returns a reader whose first bytes have arrived. It asks the backend if the object is not
// fresh, and fetches the first block if that is not stored.
func (d *cached) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, storagedrivers.Info{}, err
	}
	if rng.Offset < 0 || rng.Length < 0 || d.policy.Skip(key) || storagedrivers.IsUncached(ctx) || !d.store.ready() {
		return d.inner.Open(ctx, key, rng)
	}
	for attempt := 1; ; attempt++ {
		r := &reader{ctx: ctx, d: d, offset: rng.Offset, counted: -1}
		info, err := d.open(ctx, key, rng, r)
		if err == nil {
			return r, info, nil
		}
		_ = r.Close() // it has read nothing
		switch {
		case errors.Is(err, errUncacheable):
			return d.inner.Open(ctx, key, rng)
		case !errors.Is(err, storagedrivers.ErrChanged):
			return nil, storagedrivers.Info{}, err
		case attempt == openAttempts:
			return nil, storagedrivers.Info{}, errors.Join(storagedrivers.ErrUnavailable, err)
		}
	}
}

// open is one attempt of Open. The error is ErrChanged if the object was replaced meanwhile.
func (d *cached) open(
	ctx context.Context, key string, rng storagedrivers.Range, r *reader,
) (storagedrivers.Info, error) {
	rec, err := d.lookUp(ctx, key, r)
	if err != nil {
		return rec.Info, err
	}
	n, err := rng.Within(rec.Size)
	if err != nil {
		return rec.Info, err
	}
	d.attach(r, rec, nil)
	r.end = rng.Offset + n
	return rec.Info, r.begin()
}

// Stat returns the Info of an object.
func (d *cached) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	if err := ctx.Err(); err != nil {
		return storagedrivers.Info{}, err
	}
	if d.policy.Skip(key) || storagedrivers.IsUncached(ctx) || !d.store.ready() {
		return d.inner.Stat(ctx, key)
	}
	rec, err := d.lookUp(ctx, key, nil)
	if errors.Is(err, errUncacheable) {
		err = nil
	}
	return rec.Info, err
}

// Delete removes an object.
func (d *cached) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if d.policy.Skip(key) {
		return d.inner.Delete(ctx, key, opts)
	}
	id := d.infoID(key)
	d.store.invalidate(id)
	err := d.inner.Delete(ctx, key, opts)
	d.store.invalidate(id)
	return err
}

// List asks the backend.
func (d *cached) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	return d.inner.List(ctx, opts)
}

// Check checks the backend.
func (d *cached) Check(ctx context.Context) error { return d.inner.Check(ctx) }

// Space asks the backend, if it reports its space.
func (d *cached) Space(ctx context.Context) (storagedrivers.Space, error) {
	reporter, ok := d.inner.(storagedrivers.SpaceReporter)
	if !ok {
		return storagedrivers.Space{}, errors.ErrUnsupported
	}
	return reporter.Space(ctx)
}

// Features returns the guarantees of the backend without those that readers of blocks lack.
func (d *cached) Features() storagedrivers.Features {
	f := d.inner.Features()
	f.Replace, f.Seek, f.Local, f.Cached = storagedrivers.BestEffort, false, false, true
	return f
}

// Close ends the fetches of readers that have left, and closes the driver.
func (d *cached) Close() error {
	d.mu.Lock()
	for _, g := range d.generations {
		for _, f := range g.flights {
			f.cancel()
		}
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

// record returns a record of info, which was received now for a question at a version. known is an
// earlier record, or zero. Concurrent answers to one version have one salt, so that their readers
// share blocks.
func (d *cached) record(info storagedrivers.Info, version uint64, known record) record {
	rec := record{Info: info, Checked: d.now(), Run: d.store.run.Load()}
	switch {
	case info.ETag != "":
	case known.Key != "" && info.Same(known.Info):
		rec.Salt = known.Salt
	default:
		rec.Salt = strconv.FormatUint(rec.Run, 36) + "." + strconv.FormatUint(version, 36)
	}
	return rec
}

// load returns the record of an object, if it is stored.
func (d *cached) load(id identity, key string) (record, bool) {
	rec, ok := d.store.record(id)
	return rec, ok && rec.Key == key && rec.Size >= 0
}

// age returns the time since the backend was asked. It is never negative.
func (d *cached) age(rec record) time.Duration { return max(d.now().Sub(rec.Checked), 0) }

// fresh reports whether the backend need not be asked. A record of an earlier run is never fresh,
// because other processes may have changed the object meanwhile.
func (d *cached) fresh(rec record) bool {
	return rec.Run == d.store.run.Load() && d.age(rec) < d.policy.Revalidate
}

// lasts reports whether an object may be served while the backend is unavailable.
func (d *cached) lasts(rec record) bool {
	return d.policy.Immutable && d.age(rec) < d.policy.Revalidate+d.policy.StaleIfError
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

// lookupKey identifies a lookup that several callers may share.
type lookupKey struct {
	id      identity
	version uint64
	open    bool  // it opens the object, and does not only stat it
	block   int64 // that is opened
}

// lookup is a running question with its answer.
type lookup struct {
	done   chan struct{}
	record record
	err    error
	own    bool // err is not that of other callers
}

// lookUp returns the record of an object: from the store while it is fresh, otherwise from the
// backend. If r is set, it reads the object, and may be attached. The error is errUncacheable, with
// an Info, if r must read from the backend.
func (d *cached) lookUp(ctx context.Context, key string, r *reader) (record, error) {
	id := d.infoID(key)
	for asked := false; ; asked = true {
		q := lookupKey{id: id, version: d.store.version(id)} // before the record is loaded
		known, ok := d.load(id, key)
		fresh := ok && d.fresh(known)
		if r != nil && (!ok || !d.holds(known, r.offset/d.policy.Block)) {
			q.open, q.block = true, r.offset/d.policy.Block
		}
		if !fresh && (asked || !q.open && d.policy.Revalidate == 0) { // an answer to an earlier question may be too old
			return d.ask(ctx, key, q, known, ok, r)
		}
		d.mu.Lock()
		l, runs := d.lookups[q]
		if !runs && !fresh {
			l = &lookup{done: make(chan struct{})}
			d.lookups[q] = l
		}
		d.mu.Unlock()
		if fresh && (!runs || !q.open) { // another reader that opens the block is waited for
			return known, nil
		}
		if !runs {
			l.record, l.err = d.ask(ctx, key, q, known, ok, r)
			l.own = isOwn(ctx, l.err)
			d.mu.Lock()
			delete(d.lookups, q)
			d.mu.Unlock()
			close(l.done)
			return l.record, l.err
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return record{}, ctx.Err()
		}
		if !l.own && d.policy.Revalidate > 0 {
			return l.record, l.err
		}
	}
}

// isOwn reports whether err is an error that other callers need not have.
func isOwn(ctx context.Context, err error) bool {
	unavailable := errors.Is(err, storagedrivers.ErrUnavailable) && !errors.Is(err, storagedrivers.ErrBusy)
	common := unavailable || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUncacheable)
	return err != nil && (ctx.Err() != nil || !common)
}

// holds reports whether a block is stored, or readers of its object are fetching blocks.
func (d *cached) holds(rec record, number int64) bool {
	id := d.generationID(rec)
	d.mu.Lock()
	_, active := d.generations[id]
	d.mu.Unlock()
	return active || d.store.has(blockID(id, number), d.blockSize(rec.Info, number))
}

// ask asks the backend, and stores its answer. known is the record of an earlier answer if ok is
// set.
func (d *cached) ask(
	ctx context.Context, key string, q lookupKey, known record, ok bool, r *reader,
) (record, error) {
	last := ok && d.lasts(known)
	if last && d.now().Sub(time.Unix(0, d.down.Load())) < retryDelay {
		return known, nil
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if last {
		limited, cancel = context.WithTimeout(ctx, d.staleTimeout)
	}
	defer cancel()
	var info storagedrivers.Info
	var s *stream
	err := d.circuit.Do(limited, d.now, func(ctx context.Context) error {
		return guard.Call(func() (err error) {
			if q.open {
				info, s, err = d.probe(ctx, key, q.block)
			} else {
				info, err = d.inner.Stat(ctx, key)
			}
			return err
		})
	})
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && ok {
			d.store.invalidate(q.id)
		}
		if last && ctx.Err() == nil && (errors.Is(err, storagedrivers.ErrUnavailable) || limited.Err() != nil) {
			d.down.Store(d.now().UnixNano())
			return known, nil
		}
		return record{}, err
	}
	if !d.cacheable(info) {
		s.close()
		return record{Info: info}, errUncacheable
	}
	rec := d.record(info, q.version, known)
	if !ok || !info.Same(known.Info) || d.policy.Revalidate > 0 || d.policy.StaleIfError > 0 {
		d.store.putRecord(q.id, q.version, rec)
	}
	if s != nil {
		d.attach(r, rec, s)
	}
	return rec, nil
}

// probe opens a block of an object that is not known yet. The stream is nil if the object is empty.
func (d *cached) probe(ctx context.Context, key string, number int64) (storagedrivers.Info, *stream, error) {
	s := newStream(ctx, number)
	stop := context.AfterFunc(ctx, s.cancel)
	rng := storagedrivers.Range{Offset: number * d.policy.Block, Length: d.policy.Block}
	body, info, err := d.inner.Open(s.ctx, key, rng) //nolint:contextcheck // it ends with ctx until the object is open
	aborted := !stop()
	if err == nil {
		s.body, s.left, s.window = body, 1, 1
		if !aborted {
			return info, s, nil
		}
		err = ctx.Err()
	}
	s.close()
	if errors.Is(err, storagedrivers.ErrInvalidRange) && number == 0 {
		info, err = d.inner.Stat(ctx, key)
	}
	return info, nil, err
}

// infoID returns the identity of the record of an object.
func (d *cached) infoID(key string) identity { return newIdentity("info", d.location, key) }

// generationID returns the identity of a generation, which those of its blocks contain.
func (d *cached) generationID(rec record) identity {
	return newIdentity("object", d.location, rec.Key, strconv.FormatInt(rec.Size, 10), rec.ETag,
		rec.ModTime.UTC().Format(time.RFC3339Nano), rec.Salt, strconv.FormatInt(d.policy.Block, 10))
}

func blockID(generation identity, number int64) identity {
	return newIdentity("block", string(generation[:]), strconv.FormatInt(number, 10))
}

// newIdentity returns the hash of fields.
func newIdentity(fields ...string) identity {
	var b []byte
	for _, field := range fields {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	sum := sha256.Sum256(b)
	return identity(sum[:16])
}

// blockSize returns the number of bytes of a block.
func (d *cached) blockSize(info storagedrivers.Info, number int64) int {
	return int(max(min(d.policy.Block, info.Size-number*d.policy.Block), 0))
}
