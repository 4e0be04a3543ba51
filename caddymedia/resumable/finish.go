package resumable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/caddymedia/media/internal/locks"
	"github.com/caddymedia/media/storagedrivers"
)

// finishing are locks of the uploads that are being finished in this process, by their location.
var finishing locks.Names

// maxFinishWait is how long a request waits for another one that finishes its upload.
const maxFinishWait = 20 * time.Second

// LockFinish waits until no other request of this process finishes the upload. The caller must call
// [Upload.Reload] then: the upload may be finished. It waits at most 20 seconds.
func (u *Upload) LockFinish(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, maxFinishWait)
	defer cancel()
	return finishing.Lock(ctx, u.location())
}

// A Claim is a filename under which the item of an upload may be stored. All processes that finish
// an upload use its claims in their order, so the item is stored once.
type Claim struct {
	Filename string `json:"filename"`
	// Before is the object that had the filename before it was claimed; zero for none.
	Before storagedrivers.Info `json:"before"`
	// Earlier means that another attempt has claimed it.
	Earlier bool `json:"-"`
}

// Claim returns the n-th claim of the upload, from 0: that of the first attempt, or else proposed.
// The error is ErrUnknown if the upload was finished or terminated meanwhile.
func (u *Upload) Claim(ctx context.Context, n int, proposed Claim) (Claim, error) {
	key := dataKey(u.ID, claimName(n))
	err := put(ctx, u.storage, key, proposed)
	switch {
	case errors.Is(err, fs.ErrExist):
		claim := Claim{Earlier: true}
		info, err := get(ctx, u.storage, key, &claim)
		if err == nil && info.Key == "" {
			err = ErrUnknown
		}
		return claim, err
	case err != nil:
		return Claim{}, fmt.Errorf("claiming the filename of a resumable upload: %w", err)
	}
	// The record is removed before the claims. While it exists, no process has finished the upload.
	if _, err := u.storage.Stat(ctx, recordKey(u.Owner, u.ID)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			_ = u.store.remove(ctx, u.storage, key)
			err = ErrUnknown
		}
		return Claim{}, err
	}
	return proposed, nil
}

// Finish stores the outcome of the upload and removes its data. If another process has finished it,
// u gets that outcome.
func (u *Upload) Finish(ctx context.Context, outcome Outcome) error {
	outcome.Record, outcome.Finished = u.Record, u.store.Now().UTC().Truncate(time.Second)
	unfinished := *u
	switch err := outcome.put(ctx, u); {
	case err == nil:
		u.Outcome = &outcome
		if outcome.Stored != "" {
			u.store.observe(u.Kind, Finished)
		} else {
			u.store.observe(u.Kind, Refused)
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

// FinishCut ends an upload whose outcome is stored, but whose data is not removed, because a process
// was killed between. u gets the outcome. The error is ErrUnknown if there is none.
func (u *Upload) FinishCut(ctx context.Context) error {
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
	var err error
	removed := map[string]bool{} // a part may occur more than once
	for _, part := range parts {
		if removed[part.ID] {
			continue
		}
		removed[part.ID] = true
		if outcome.Stored != "" {
			part.end(ctx, outcome.Finished)
		}
		err = errors.Join(err, part.removeAll(ctx))
	}
	if err == nil {
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

// Terminate removes the upload, or the outcome of a finished one. It interrupts a request that adds
// bytes. event is that of the end of an unfinished one. claimed reports that the item may have been
// stored, or may still be stored by a request that is finishing the upload.
func (u *Upload) Terminate(ctx context.Context, event Event) (claimed bool, err error) {
	if u.Outcome != nil {
		return true, u.storage.Delete(ctx, outcomeKey(u.ID))
	}
	if err := u.storage.Delete(ctx, recordKey(u.Owner, u.ID)); err != nil {
		return false, fmt.Errorf("removing a resumable upload: %w", err)
	}
	u.store.observe(u.Kind, event)
	writing.interrupt(u.location())
	claimed, _ = u.store.removeData(ctx, u.storage, u.ID) // Sweep removes the rest
	return claimed, nil
}

// removeAll removes the record and the data. The error is that of the record. Without a record, Sweep
// removes the data. As long as there is a record there must be the data: the upload would begin again.
func (u *Upload) removeAll(ctx context.Context) error {
	err := u.store.remove(ctx, u.storage, recordKey(u.Owner, u.ID))
	if err == nil {
		_, _ = u.store.removeData(ctx, u.storage, u.ID) // see above
	}
	return err
}

// remove removes an object, and logs the error.
func (s *Store) remove(ctx context.Context, storage *storagedrivers.Storage, key string) error {
	err := storage.Delete(ctx, key)
	if err != nil {
		s.Log.Warn("removing a part of a resumable upload", "storage", storage.Name(), "error", err)
	}
	return err
}

// removeData removes everything below an upload, in the order of the keys: the claims after the
// bytes. claimed reports that there may have been claims. Errors are logged.
func (s *Store) removeData(ctx context.Context, storage *storagedrivers.Storage, id string) (claimed bool, err error) {
	prefix := dataKey(id, "")
	for info, listErr := range storage.All(ctx, prefix) {
		if listErr != nil {
			s.Log.Warn("removing a resumable upload", "storage", storage.Name(), "error", listErr)
			return true, listErr
		}
		claimed = claimed || strings.HasPrefix(info.Key[len(prefix):], claimPrefix)
		err = errors.Join(err, s.remove(ctx, storage, info.Key))
	}
	return claimed, err
}
