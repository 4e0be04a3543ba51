package resumable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Finishing says how the item of an upload is stored.
type Finishing struct {
	// BaseURL is the start of public addresses if the alias has none.
	BaseURL string
	// Ticket of the caller, on which a refused item counts; nil for none.
	Ticket *access.Ticket
	// Authorize is called with the upload right before the item is stored, because the caller may have
	// lost its rights since it began the upload. A failure leaves the upload to a caller with rights.
	// isRepeated reports that the item is counted already, and may be stored.
	Authorize func(ctx context.Context, u *Upload, isRepeated bool) (Rights, *item.Failure)
	// Refusals are those that end the upload.
	Refusals Refusals
	// Matches and Permits are those of [upload.Upload], for an upload whose filename is exact.
	Matches func(storagedrivers.Info) bool
	Permits func(storagedrivers.Info) *item.Failure
}

// Rights are those with which an item is stored.
type Rights struct {
	// Issuer counts the items of tickets.
	Issuer *access.Issuer
	// Ticket of the caller; nil for none.
	Ticket *access.Ticket
	// Release, if set, is called when Issuer is not needed any more.
	Release func()
}

// Refusals are refusals of an item that are recorded as the outcome of its upload.
type Refusals int

// The choices of refusals. All of them leave out failures that are temporary.
const (
	// RecordRefusals is for an upload whose address a client has.
	RecordRefusals Refusals = iota
	// RecordKept is for a new upload, whose address no client has: only the refusal of an item that
	// may be stored is recorded. Otherwise the caller must call [Upload.Drop].
	RecordKept
	// RecordNone is for an upload that the service finishes without its client.
	RecordNone
)

// Finish passes the item of a complete upload through the checks, counts it on a ticket and stores
// it. However often it is called, by any process that shares the storage and the token store, the
// item is stored once and counted once. Afterwards u has its outcome, unless the failures are
// temporary. It does nothing for an upload that is not complete, or that is finished.
//
// These steps make it so:
//   - The upload is leased to one attempt at a time.
//   - The item is counted under the ID of the upload, and a ticket counts an ID once.
//   - Then the attempt is kept, and only then is the item stored. A later attempt knows by that,
//     and by the time of the first one, which item may be its own; see [upload.Repetition]. If the
//     token store has forgotten it, the storage still shows that the upload was complete before,
//     and since when.
//   - The outcome is created once, and only then is the upload removed, the record first, so that
//     no process begins again.
//
// The end of ctx stops only the wait for another request that finishes the upload.
func (u *Upload) Finish(ctx context.Context, f Finishing) item.Failures {
	if !u.isDue() {
		return nil
	}
	unlock, err := u.waitFinish(ctx)
	if err != nil {
		return failuresOf(err)
	}
	defer unlock()
	ctx = context.WithoutCancel(ctx)
	leased, cancel := context.WithCancel(ctx)
	defer cancel()
	lease, err := u.lease(leased, cancel)
	if err != nil {
		return failuresOf(err)
	}
	a := &attempt{Upload: u, how: f, lease: lease, isRepeated: lease.IsRepeated}
	a.repetition = upload.Repetition{ID: u.ID, Began: lease.Began, Again: lease.IsRepeated}
	if u.wasDue && !lease.IsRepeated { // there was no attempt, or the token store has forgotten it
		a.repetition = u.unknownAttempt()
	}
	defer a.end(ctx)
	// Another process may have finished the upload before, and may even have removed a part of it
	// only: then there is an outcome.
	if err := u.reload(ctx, u.parts); err != nil || !u.isDue() {
		return failuresOf(err)
	}
	if err := u.finishCut(ctx); !errors.Is(err, ErrUnknown) {
		return failuresOf(err)
	}
	items, failures := a.storeItems(storagedrivers.WithLease(leased, lease.IsLost))
	switch {
	case failures != nil && u.Form == Keep && !a.kept && !a.isRepeated && !lease.IsLost():
		u.letGo(ctx)
	case failures != nil && !a.records(failures):
		if u.Reload(ctx) == nil && !u.isDue() {
			return nil // another process has finished it
		}
	case failures == nil && u.Held != nil:
	default:
		if err := a.recordAll(ctx, items, failures); err != nil {
			failures = failuresOf(err)
		}
	}
	a.store.CountRefused(ctx, f.Ticket, failures)
	return failures
}

// lease begins an attempt to finish the upload: no other one runs, in any process that shares the
// token store. lost is called if another one may run by now. The error is an *[item.Failure].
func (u *Upload) lease(ctx context.Context, lost func()) (*access.Attempt, error) {
	lease, err := u.store.Issuer.Attempt(ctx, u.Request(), lost)
	switch {
	case errors.Is(err, access.ErrRunning):
		return nil, finishingElsewhere(err)
	case err != nil:
		return nil, u.store.unleased(err)
	}
	return lease, nil
}

// Request identifies the attempts to finish the upload.
func (u *Upload) Request() access.Request {
	return access.Request{ID: access.RequestID("resumable", u.ID), Account: u.Account, Owner: u.Owner, Fingerprint: "resumable"}
}

// unleased returns the failure for an error of the token store, and logs the error.
func (s *Store) unleased(err error) *item.Failure {
	s.Log.Error("token store unreachable", "error", err)
	return &item.Failure{Reason: item.Unavailable, Message: "the upload cannot be finished now, try again later", Err: err}
}

// unknownAttempt is the repetition of an attempt that may have begun when the upload was complete.
// An item that the storage has had for longer is another one. If the items have another storage,
// whose clock may be another one too, an equal item of two seconds before counts as this one.
func (u *Upload) unknownAttempt() upload.Repetition {
	r := upload.Repetition{ID: u.ID, Began: u.changed, Again: true}
	if alias := u.store.Uploader.Aliases[u.ItemKind()][u.Alias]; alias != nil && alias.Storage == u.storage {
		r.Since = u.due
	}
	return r
}

// isDue reports whether the item of the upload is to be stored.
func (u *Upload) isDue() bool {
	return u.Outcome == nil && u.Held == nil && u.Form.HasItem() && u.Complete()
}

// attempt is an attempt to finish an upload.
type attempt struct {
	*Upload
	how   Finishing
	lease *access.Attempt

	repetition   upload.Repetition
	isRepeated   bool // an earlier attempt was kept: it has counted the item, and may have stored it
	unauthorized bool
	kept         bool           // this attempt may have stored it
	rights       Rights         // after the authorization
	counted      *access.Ticket // on which this attempt has counted the item; nil for none
}

// storeItems stores the item, or those of held uploads. An upload that is to be held becomes it.
// [upload.Uploader.Upload] calls authorize after the checks.
func (a *attempt) storeItems(ctx context.Context) ([]upload.Item, item.Failures) {
	req := upload.Upload{SubFolder: a.SubFolder, Matches: a.how.Matches, Permits: a.how.Permits, Request: upload.Request{
		Kind: a.ItemKind(), Alias: a.Alias, BaseURL: a.how.BaseURL, Confirm: a.authorize,
		Repetition: &a.repetition,
		Actor:      a.actor(),
	}}
	switch {
	case a.Form == Completion:
		req.Exact = path.Join("/", a.SubFolder, a.Filename)[1:]
	case a.Form == Keep:
		a.repetition.Began = a.Created
		if failures := eachOf(a.parts, func(part *Upload) error { return part.claim(ctx, a.ID) }); failures != nil {
			return nil, failures
		}
	case a.Hold > 0:
		req.Hold = upload.HoldAll(a.hold)
	}
	return a.store.Uploader.Upload(ctx, req, a.source())
}

// authorize checks the rights of the caller, counts the item and keeps the attempt.
func (a *attempt) authorize(ctx context.Context, _ upload.Commitment) (settle func(upload.Outcome), failure *item.Failure) {
	if a.rights, failure = a.how.Authorize(ctx, a.Upload, a.isRepeated); failure == nil {
		failure = a.count(ctx)
	}
	if failure == nil {
		switch err := a.lease.Keep(ctx); {
		case errors.Is(err, access.ErrLost):
			failure = finishingElsewhere(err)
		case err != nil:
			failure = a.store.unleased(err)
		}
	}
	a.unauthorized, a.kept = failure != nil, failure == nil
	return func(outcome upload.Outcome) { a.kept = outcome != upload.NothingStored }, failure
}

// count counts the item on the ticket that created the upload or, if that has ended or is used up,
// on the caller's. A caller with a token has none, and may finish an upload that is not counted.
func (a *attempt) count(ctx context.Context) *item.Failure {
	if a.isRepeated {
		return nil // it was counted before the earlier attempt was kept
	}
	issuer, caller := a.rights.Issuer, a.rights.Ticket
	if a.Ticket != "" && (caller == nil || caller.ID != a.TicketID()) {
		_, creator, err := issuer.VerifyTicket(ctx, a.TicketID())
		if err == nil {
			err = issuer.Take(ctx, creator, a.ID, 1)
		}
		switch {
		case err == nil:
			a.counted = creator
			return nil
		case !errors.Is(err, access.ErrCredentials) && !errors.Is(err, access.ErrUsedUp):
			return a.store.uncounted(err)
		}
	}
	if caller == nil {
		return nil
	}
	if err := issuer.Take(ctx, caller, a.ID, 1); err != nil {
		return a.store.uncounted(err)
	}
	a.counted = caller
	return nil
}

// records reports whether failures become the outcome. An item that an earlier attempt may have
// stored has passed the checks. A caller without the rights, or the end of a lease, says nothing
// about the item.
func (a *attempt) records(failures item.Failures) bool {
	if a.isRepeated || a.unauthorized || a.how.Refusals == RecordNone || a.how.Refusals == RecordKept && !a.kept {
		return false
	}
	if a.Form == Completion && (failures[0].Reason == item.Forbidden || failures[0].Reason == item.Conflict) { // for this request only
		return false
	}
	return isFinal(failures[0]) && !a.lease.IsLost()
}

// end returns the item to its ticket if it is refused. Otherwise the item counts until its upload
// is terminated: after a temporary failure, the next attempt may find it stored. Then it ends the
// lease.
func (a *attempt) end(ctx context.Context) {
	if a.counted != nil && a.Outcome != nil && a.Outcome.Stored == "" {
		a.store.GiveBack(ctx, a.rights.Issuer, a.counted.ID, a.ID)
	}
	if a.rights.Release != nil {
		a.rights.Release()
	}
	end := func() error { return a.lease.Forget(ctx) }
	if a.kept && a.Outcome == nil {
		end = func() error { return a.lease.End(ctx, nil) }
	}
	if err := end(); err != nil {
		a.store.Log.Warn("ending an attempt to finish a resumable upload", "error", err)
	}
}

// CountRefused counts the items that were refused for good on the ticket of the caller, if it has
// one. It does not end with ctx, and logs an error.
func (s *Store) CountRefused(ctx context.Context, ticket *access.Ticket, failures item.Failures) {
	refused := 0
	for _, failure := range failures {
		if failure.Filename != "" && isFinal(failure) {
			refused++
		}
	}
	if ticket == nil || refused == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ticketTimeout)
	defer cancel()
	if err := s.Issuer.Refuse(ctx, ticket, refused); err != nil {
		s.Log.Error("counting refused items of a ticket", "error", err)
	}
}

// ticketTimeout bounds a change of a ticket that does not end with the request.
const ticketTimeout = 10 * time.Second

// GiveBack uncounts the items of a ticket that were counted under use. It does not end with ctx,
// and logs an error.
func (s *Store) GiveBack(ctx context.Context, issuer *access.Issuer, ticket access.ID, use string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ticketTimeout)
	defer cancel()
	if err := issuer.GiveBack(ctx, ticket, use); err != nil {
		s.Log.Error("giving items back to a ticket", "error", err)
	}
}

// uncounted returns the failure of an item that cannot be counted, and logs an error of the token
// store.
func (s *Store) uncounted(err error) *item.Failure {
	failure := Uncounted(err)
	if failure.Reason == item.Unavailable {
		s.Log.Error("token store unreachable", "error", err)
	}
	return failure
}

// Uncounted returns the failure for an error of [access.Issuer.Take].
func Uncounted(err error) *item.Failure {
	switch {
	case errors.Is(err, access.ErrUsedUp):
		return &item.Failure{Reason: item.Forbidden, Message: "the ticket is used up: request a new one"}
	case errors.Is(err, access.ErrCredentials):
		return &item.Failure{Reason: item.Forbidden, Message: "the ticket has ended"}
	}
	return &item.Failure{Reason: item.Unavailable, Message: "tickets cannot be checked now, try again later"}
}

// outcomeOf returns the outcome of an item.
func outcomeOf(item upload.Item) Outcome {
	return Outcome{
		Stored: item.Filename, Variant: item.WebP != "", Renditions: slices.Collect(maps.Keys(item.Renditions)), Trash: item.Trash,
	}
}

// recordAll records the outcome of stored items, or of the refusal of one.
func (a *attempt) recordAll(ctx context.Context, items []upload.Item, failures item.Failures) error {
	if failures != nil {
		return a.record(ctx, Outcome{Refused: failures[0].Message})
	}
	outcome := outcomeOf(items[0])
	if a.Form == Keep {
		if err := a.recordParts(ctx, items); err != nil {
			return err
		}
		outcome.Kept, outcome.Until = a.ID, a.endOfParts()
	}
	err := a.record(ctx, outcome)
	if err == nil && a.Outcome.Stored == outcome.Stored { // not that of another process
		a.Item = &items[0]
	}
	return err
}

// isFinal reports whether the item would be refused again.
func isFinal(failure *item.Failure) bool {
	switch failure.Reason {
	case item.BadRequest, item.Forbidden, item.Conflict, item.TooLarge, item.BadContent:
		return true
	default:
		return false
	}
}

// failuresOf returns the failures for an error of the state of an upload; nil for none.
func failuresOf(err error) item.Failures {
	if err == nil {
		return nil
	}
	if failure, ok := errors.AsType[*item.Failure](err); ok {
		return item.Failures{failure}
	}
	if errors.Is(err, ErrUnknown) {
		return item.Failures{{Reason: item.Unavailable, Message: "the upload has ended", Err: err}}
	}
	return item.Failures{item.StorageFailure(err)}
}

// maxFinishWait is how long a request waits for another one that finishes its upload.
const maxFinishWait = 20 * time.Second

// LockFinish waits until no other request of this process finishes the upload, at most 20 seconds,
// and reloads the upload: it may be finished. The error may be an *[item.Failure].
func (u *Upload) LockFinish(ctx context.Context) (unlock func(), err error) {
	unlock, err = u.waitFinish(ctx)
	if err != nil {
		return nil, err
	}
	if err := u.Reload(context.WithoutCancel(ctx)); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// waitFinish is LockFinish without reloading the upload.
func (u *Upload) waitFinish(ctx context.Context) (unlock func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, maxFinishWait)
	defer cancel()
	unlock, err = u.store.Active.finishing.Lock(waiting, u.location())
	if err != nil {
		return nil, finishingElsewhere(err)
	}
	return unlock, nil
}

// finishingElsewhere returns the failure of a request while another one finishes the upload.
func finishingElsewhere(err error) *item.Failure {
	return &item.Failure{Reason: item.Busy, Message: "the upload is being finished, ask again later", Err: err}
}

// record stores the outcome of the upload and removes its data. If another process has finished it,
// u gets that outcome.
func (u *Upload) record(ctx context.Context, outcome Outcome) error {
	outcome.Record, outcome.Finished = u.Record, u.store.Now().UTC().Truncate(time.Second)
	unfinished := *u
	switch err := outcome.put(ctx, u); {
	case err == nil:
		u.Outcome = &outcome
		if outcome.Stored != "" {
			u.store.observe(&u.Record, Finished)
		} else {
			u.store.observe(&u.Record, Refused)
		}
	case errors.Is(err, fs.ErrExist):
		if err := u.reloadOutcome(ctx); err != nil {
			return err
		}
	default:
		return fmt.Errorf("storing the outcome of a resumable upload: %w", err)
	}
	unfinished.removeFinished(ctx, unfinished.parts, u.Outcome)
	return nil
}

// finishCut ends an upload whose outcome is stored, but whose data is not removed, because a
// process was killed between. u gets the outcome. The error is ErrUnknown if there is none.
func (u *Upload) finishCut(ctx context.Context) error {
	unfinished := *u
	if err := u.reloadOutcome(ctx); err != nil {
		return err
	}
	unfinished.removeFinished(ctx, unfinished.parts, u.Outcome)
	return nil
}

// removeFinished removes the upload after its parts. While one remains, so does the record, for
// [Store.Sweep]. If the item is stored, the parts get outcomes: tus-js-client asks for the parts
// before it repeats a final upload, and would send missing ones again (lib/upload.ts,
// _startParallelUpload).
func (u *Upload) removeFinished(ctx context.Context, parts []*Upload, outcome *Outcome) {
	work := guard.NewGroup(besides)
	removed := map[string]bool{} // a part may occur more than once
	for _, part := range parts {
		if removed[part.ID] {
			continue
		}
		removed[part.ID] = true
		work.Go(func() error {
			if outcome.Stored != "" && part.Form == Partial {
				part.end(ctx, outcome.Finished)
			}
			if len(part.parts) > 0 { // a held one
				part.removeFinished(ctx, part.parts, outcome)
				return nil
			}
			return part.removeAll(ctx)
		})
	}
	if work.Wait() == nil {
		_ = u.removeAll(ctx) // Sweep removes the rest
	}
}

// end stores the outcome of a part.
func (u *Upload) end(ctx context.Context, at time.Time) {
	outcome := Outcome{Record: u.Record, Finished: at}
	if err := outcome.put(ctx, u); err != nil && !errors.Is(err, fs.ErrExist) {
		u.store.Log.Warn("storing the outcome of a part", "storage", u.storage.Name(), "error", err)
	}
}

// Terminate removes the upload, or the outcome of a finished one, never its item. It interrupts a
// request that adds bytes.
func (u *Upload) Terminate(ctx context.Context) error { return u.terminate(ctx, Terminated) }

// terminate is Terminate. event is that of the end of an unfinished upload.
func (u *Upload) terminate(ctx context.Context, event Event) error {
	switch {
	case u.Outcome != nil: // that of a kept upload has another key, and stays
		return u.storage.Delete(ctx, outcomeKey(u.ID))
	case u.Held != nil:
		if err := u.claim(ctx, ended); err != nil {
			return err
		}
	}
	mayBeStored, resume := u.halt(ctx)
	defer resume()
	err := u.discard(ctx, event, mayBeStored)
	if u.Held != nil {
		for _, part := range u.parts {
			err = errors.Join(err, part.removeAll(ctx))
		}
	}
	return err
}

// halt keeps others from finishing the upload until resume is called. It reports whether the item
// may be stored, or is just being stored.
func (u *Upload) halt(ctx context.Context) (mayBeStored bool, resume func()) {
	if !u.isDue() {
		return false, func() {}
	}
	lease, err := u.lease(ctx, func() {})
	if err != nil {
		return true, func() {}
	}
	return lease.IsRepeated, func() { _ = lease.Forget(ctx) } // it has kept nothing
}

// discard removes an unfinished upload. An item that was counted, but cannot be stored, is given
// back to the ticket.
func (u *Upload) discard(ctx context.Context, event Event, mayBeStored bool) error {
	if err := u.storage.Delete(ctx, recordKey(u.Owner, u.ID)); err != nil {
		return fmt.Errorf("removing a resumable upload: %w", err)
	}
	u.store.observe(&u.Record, event)
	u.store.Active.writing.interrupt(u.location())
	u.removeData(ctx)
	if !mayBeStored && u.Ticket != "" && u.Complete() {
		u.store.GiveBack(ctx, u.store.Issuer, u.TicketID(), u.ID)
	}
	return nil
}

// Drop removes an upload whose creation fails, because its client will create another one, or the
// final upload of a multipart upload again. failures are those of its item, nil if it was not
// received. It returns false if a later request can find the upload, or if its item may be stored.
func (u *Upload) Drop(ctx context.Context, failures item.Failures) bool {
	if u.Form == Final || u.Outcome != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTime)
	defer cancel()
	event := Terminated
	if failures != nil && isFinal(failures[0]) {
		event = Refused
	}
	mayBeStored, resume := u.halt(ctx)
	defer resume()
	err := u.Reload(ctx)
	switch {
	case err == nil && (u.Outcome != nil || mayBeStored):
		return false
	case err == nil:
		err = u.discard(ctx, event, false)
	case errors.Is(err, ErrUnknown) && u.Form == Completion: // it was aborted meanwhile, and its parts are gone
		u.store.removeEnded(ctx, u.storage, recordKey(u.Owner, u.ID))
		err = nil
	}
	if err != nil {
		u.store.Log.Warn("removing a resumable upload", "error", err)
	}
	return err == nil
}

// dropTime bounds the removal of an upload whose creation fails.
const dropTime = 10 * time.Second

// removeAll removes the record and the data. The error is that of the record. As long as there is a
// record there must be the data: the upload would begin again.
func (u *Upload) removeAll(ctx context.Context) error {
	err := u.store.remove(ctx, u.storage, recordKey(u.Owner, u.ID))
	if err == nil {
		u.removeData(ctx)
	}
	return err
}

// removeData removes the data. Without a record, Sweep removes what is left.
func (u *Upload) removeData(ctx context.Context) {
	if u.late {
		_ = u.store.remove(ctx, u.storage, dataKey(u.ID, lengthName)) // it is logged
	}
	if u.Held != nil {
		_ = u.store.remove(ctx, u.storage, dataKey(u.ID, heldName))
		_ = u.store.remove(ctx, u.storage, dataKey(u.ID, keptName))
	}
	if err := u.bytes.Remove(ctx); err != nil {
		u.store.Log.Warn("removing the bytes of a resumable upload", "storage", u.storage.Name(), "error", err)
	}
}

// remove removes an object, and logs the error.
func (s *Store) remove(ctx context.Context, storage *storagedrivers.Storage, key string) error {
	err := storage.Delete(ctx, key)
	if err != nil {
		s.Log.Warn("removing a part of a resumable upload", "storage", storage.Name(), "error", err)
	}
	return err
}

// isOver reports whether an error means that the next operations on the storage fail too: it is
// closed, or ctx has ended.
func isOver(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, storagedrivers.ErrClosed))
}

// removeData removes everything below an ID. Errors are logged.
func (s *Store) removeData(ctx context.Context, storage *storagedrivers.Storage, id string) (err error) {
	for info, listErr := range storage.All(ctx, dataKey(id, "")) {
		if listErr != nil {
			s.Log.Warn("removing a resumable upload", "storage", storage.Name(), "error", listErr)
			return listErr
		}
		failed := s.remove(ctx, storage, info.Key)
		err = errors.Join(err, failed)
		if isOver(ctx, failed) {
			return err
		}
	}
	return err
}
