package observe

import (
	"errors"
	"io/fs"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/media"
)

// auditActions are the requested changes of items.
var auditActions = map[upload.Action]string{
	upload.Stored: "store", upload.Replaced: "replace", upload.Deleted: "delete",
}

func (o *Observer) auditChange(change upload.Change) {
	if t := change.Transfer; t != nil {
		o.writeAudit(transferAction(t), t.Alias.Kind, t.Alias.Name, change.Actor, "ok", zap.String("filename", t.Filename),
			zap.String("to_alias", change.Alias.Name), zap.String("to", change.Item.Filename), zap.Int64("size", change.Item.Size))
		return
	}
	o.writeAudit(auditActions[change.Action], change.Alias.Kind, change.Alias.Name, change.Actor, deletion(change.Err),
		zap.String("filename", change.Item.Filename), zap.Int64("size", change.Item.Size))
}

// transferAction returns the action of a move or copy.
func transferAction(t *upload.Transfer) string {
	if t.Copy {
		return "copy"
	}
	return "move"
}

// deletion returns the result of a deletion in words, without the detail of its error.
func deletion(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such item"
	case errors.Is(err, upload.ErrOtherItem):
		return upload.ErrOtherItem.Error()
	default:
		return "the storage did not delete the item"
	}
}

// auditRefusal writes the submitted name. The size is unknown.
func (o *Observer) auditRefusal(req upload.Request, failure *aliases.Failure) {
	action, alias := auditActions[upload.Stored], req.Alias
	fields := []zap.Field{zap.String("filename", failure.Filename), zap.Stringer("reason", failure.Reason)}
	switch t := req.Transfer; {
	case t != nil && t.Alias != nil:
		action, alias = transferAction(t), t.Alias.Name
		fields = append(fields, zap.String("to_alias", req.Alias), zap.String("to", t.To[:min(len(t.To), aliases.MaxName)]))
	case t != nil:
		action = transferAction(t)
	case req.Filename != "":
		action = auditActions[upload.Replaced]
	}
	o.writeAudit(action, req.Kind, alias, req.Actor, failure.Message, fields...)
}

// auditDeletion writes a set of items, or a refused request to delete items.
func (o *Observer) auditDeletion(d media.Deletion) {
	result := "ok"
	if d.Failure != nil {
		result = d.Failure.Message
	}
	fields := []zap.Field{zap.String("filename", d.Filename)}
	if d.IsSet {
		fields = []zap.Field{zap.String("folder", d.Folder), zap.Int("number", d.Number)}
	}
	o.writeAudit(auditActions[upload.Deleted], d.Kind, d.Alias, d.Actor, result, fields...)
}

// auditTermination writes the submitted name of an upload that was ended, and whose it was.
func (o *Observer) auditTermination(upload *resumable.Record, actor aliases.Actor, err error) {
	result := "ok"
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, resumable.ErrUnknown):
		result = "there is no such upload"
	case err != nil:
		result = "the storage did not remove the upload"
	}
	o.writeAudit("terminate", upload.ItemKind(), upload.Alias, actor, result,
		zap.String("filename", upload.Filename), zap.Int64("size", upload.Length), zap.String("owner", upload.Owner))
}

// writeAudit writes a line of the logger "media.audit". There is one for each item that was stored,
// replaced, moved, copied or deleted, for each that could not be deleted, for each set of items
// that was deleted, for each resumable upload that was ended on request, and for each failure of a
// refused request.
func (o *Observer) writeAudit(action string, kind aliases.Kind, alias string, actor aliases.Actor, result string, more ...zap.Field) {
	fields := append([]zap.Field{zap.String("action", action), zap.String("kind", string(kind)), zap.String("alias", alias)}, more...)
	fields = append(fields, zap.String("via", string(actor.Origin)), zap.String("account", actor.Account))
	if actor.User != "" {
		fields = append(fields, zap.String("user", actor.User))
	}
	o.audit.Info("item", append(fields, zap.String("client", actor.Client), zap.String("result", result))...)
}
