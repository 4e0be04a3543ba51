package upload

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
)

// asksOthers reports whether the checks of the alias are asked about the request. A move within an
// alias brings nothing new.
func (b *batch) asksOthers() bool {
	t := b.operation.Transfer
	return len(b.alias.Checks) > 0 && (t == nil || t.Copy || t.From.Kind != b.alias.Kind || t.From.Name != b.alias.Name)
}

// askOthers asks the checks of the alias about an upload, as it will be stored. After a check
// without an answer none is asked about the rest of the request, which has to be repeated.
func (b *batch) askOthers(ctx context.Context, up *received) error {
	if b.unanswered.Load() {
		return nil
	}
	file := check.File{
		Content: up.content(), Size: up.size, Kind: b.alias.Kind.Name(), Alias: b.alias.Name, Filename: up.filename,
		Type: b.alias.ContentType(naming.Extension(up.filename)), Account: b.req.Actor.Account, User: b.req.Actor.User, Party: b.party,
	}
	for _, c := range b.alias.Checks {
		start := b.uploader.Now()
		err := c.Of(ctx, file)
		if ctx.Err() != nil {
			return item.StorageFailure(ctx.Err())
		}
		if content, ok := errors.AsType[*check.ContentError](err); ok {
			return item.ContentFailure(content.Err)
		}
		result := check.ResultOf(err)
		b.uploader.Observer.Checked(b.alias, c.Name, result, b.uploader.Now().Sub(start))
		if c.Passes(result) {
			up.unchecked = append(up.unchecked, c.Name)
			b.uploader.Log.Warn("storing a file without a check",
				"alias", b.alias.Name, "filename", up.filename, "check", c.Name, "error", err)
			continue
		}
		if failure := unaccepted(c, result, err); failure != nil {
			if result == check.Unanswered {
				b.unanswered.Store(true)
			}
			return failure
		}
	}
	return nil
}

// unaccepted returns the failure of a file that a check does not accept; nil if it does.
func unaccepted(c *check.Check, result check.Result, err error) error {
	switch result {
	case check.Accepted:
		return nil
	case check.Refused:
		refused, _ := errors.AsType[*check.RefusedError](err)
		return &item.Failure{Reason: item.BadContent, Message: refused.Message, Err: err}
	case check.TooLarge:
		return item.Failf(item.TooLarge, "larger than what the check %s takes, at most %s", c.Name, bytesize.Format(c.MaxSize))
	default:
		return &item.Failure{
			Reason: item.Unavailable, Message: "the check " + c.Name + " cannot be made now, try again later",
			Err: fmt.Errorf("%w: %w", check.ErrUnanswered, err),
		}
	}
}
