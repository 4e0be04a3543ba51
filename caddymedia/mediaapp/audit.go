package mediaapp

import (
	"errors"
	"io/fs"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// auditName is what the logger "media.audit" has behind the name of the app. It writes one
// line for each item that was stored, replaced or deleted, or was to be deleted, and for each
// one because of which nothing of a request was stored.
const auditName = "audit"

// auditMessage is the message of all its lines; the rest is in fields.
const auditMessage = "item"

// actions of the audit log: what was asked for, whatever came of it.
var auditActions = map[ingest.Action]string{
	ingest.Stored: "store", ingest.Replaced: "replace", ingest.Deleted: "delete",
}

// Result of what was done.
const auditOK = "ok"

func (a *App) auditChange(change ingest.Change) {
	a.audit(auditActions[change.Action], change.Alias.Kind, change.Alias.Name, change.Actor, deletion(change.Err),
		zap.String("filename", change.Item.Filename), zap.Int64("size", change.Item.Size))
}

// deletion tells of the error of a deletion without its detail.
func deletion(err error) string {
	switch {
	case err == nil:
		return auditOK
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such item"
	default:
		return "the storage did not delete the item"
	}
}

// auditRefusal: the name is the submitted one, and a size is not known.
func (a *App) auditRefusal(req ingest.Request, failure *ingest.Failure) {
	a.audit(auditActions[ingest.Stored], req.Kind, req.Alias, req.Actor, failure.Message,
		zap.String("filename", failure.Filename), zap.Stringer("reason", failure.Reason))
}

func (a *App) audit(action string, kind ingest.Kind, alias string, actor ingest.Actor, result string, more ...zap.Field) {
	fields := append([]zap.Field{zap.String("action", action), zap.String("kind", string(kind)), zap.String("alias", alias)}, more...)
	a.auditLog.Info(auditMessage, append(fields,
		zap.String("via", string(actor.Origin)), zap.String("account", actor.Account), zap.String("client", actor.Client),
		zap.String("result", result))...)
}
