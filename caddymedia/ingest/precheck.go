package ingest

import "context"

// Precheck returns the failures with which an item of a name and size, in bytes, is sure to be
// refused; nil if it may be accepted. It reports them to the observer like those of an upload.
// A size of 0 is not checked.
func (u *Uploader) Precheck(ctx context.Context, req Request, name string, size int64) Failures {
	b := u.newBatch(req)
	err := func() error {
		alias, err := b.findAlias(b.aliasName())
		if err == nil {
			err = req.Forced.checkSubFolder(b.subFolder())
		}
		if err != nil {
			return err
		}
		up := &upload{submitted: name}
		b.uploads = append(b.uploads, up)
		if _, err := alias.filename(req.Forced.filename(name), b.subFolder(), b.now, b.req.Actor.Origin); err != nil {
			up.failure = asFailure(err)
		} else if limit := req.Forced.Limit(alias.MaxSize); size > limit {
			up.failure = tooLarge(limit)
		}
		return b.failed()
	}()
	if err == nil {
		return nil
	}
	_, failures := b.report(ctx, err)
	return failures
}
