package observe

import (
	"errors"
	"io/fs"
	"strings"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// auditActions are the requested changes of items.
var auditActions = map[upload.Action]string{
	upload.Stored: "store", upload.Replaced: "replace", upload.Deleted: "delete",
	upload.Purged: "purge",
}

// resultOK is the result of a change that was made.
const resultOK = "ok"

func (o *Observer) auditChange(change upload.Change) {
	c := Change{
		Action: auditActions[change.Action], Kind: change.Alias.Kind, Alias: change.Alias.Name, Filename: change.Item.Filename,
		Size: change.Item.Size, Actor: change.Actor, Result: deletion(change.Err),
	}
	if t := change.Transfer; t != nil && t.Restores {
		c.Action = transferAction(t)
	} else if t != nil {
		c.Action, c.Kind, c.Alias, c.Filename = transferAction(t), t.From.Kind, t.From.Name, t.Filename
		c.ToAlias, c.To, c.Result = change.Alias.Name, change.Item.Filename, resultOK
	}
	fields := []zap.Field{zap.Int64("size", c.Size)}
	if change.Item.Trash != "" {
		fields = append(fields, zap.String("trash", change.Item.Trash))
	}
	if change.Item.Unchecked != nil {
		fields = append(fields, zap.Strings("unchecked", change.Item.Unchecked))
	}
	o.writeAudit(c, c.Result == resultOK && change.Action != upload.Unchanged, fields...)
}

// transferAction returns the action of a move or copy.
func transferAction(t *upload.Transfer) string {
	switch {
	case t.Restores:
		return "restore"
	case t.Copy:
		return "copy"
	}
	return "move"
}

// deletion returns the result of a deletion in words, without the detail of its error.
func deletion(err error) string {
	switch {
	case err == nil:
		return resultOK
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such item"
	case errors.Is(err, item.ErrOther):
		return item.ErrOther.Error()
	default:
		return "the storage did not delete the item"
	}
}

// auditRefusal writes the submitted name. The size is unknown.
func (o *Observer) auditRefusal(op upload.Operation, failure *item.Failure) {
	c := Change{
		Action: auditActions[upload.Stored], Kind: op.Kind, Alias: op.Alias, Filename: failure.Filename, Size: -1,
		Actor: op.Actor, Result: failure.Message,
	}
	fields := []zap.Field{zap.Stringer("reason", failure.Reason)}
	if refused, ok := errors.AsType[*check.RefusedError](failure.Err); ok {
		fields = append(fields, zap.String("detail", refused.Detail))
	}
	switch t := op.Transfer; {
	case t != nil:
		c.Action = transferAction(t)
		if t.From != nil && !t.Restores {
			c.Alias = t.From.Name
			fields = append(fields, zap.String("to_alias", op.Alias), zap.String("to", t.To[:min(len(t.To), item.MaxName)]))
		}
	case op.Filename != "":
		c.Action = auditActions[upload.Replaced]
	}
	o.writeAudit(c, false, fields...)
}

func deletionAction(d service.Deletion) string {
	if d.Purge {
		return auditActions[upload.Purged]
	}
	return auditActions[upload.Deleted]
}

// auditDeletion writes a set of items, or a refused request to delete items.
func (o *Observer) auditDeletion(d service.Deletion) {
	c := Change{
		Action: deletionAction(d), Kind: d.Kind, Alias: d.Alias, Filename: d.Filename, Size: -1,
		IsSet: d.IsSet, Folder: d.Folder, Number: d.Number, Actor: d.Actor, Result: resultOK,
	}
	if d.Failure != nil {
		c.Result = d.Failure.Message
	}
	o.writeAudit(c, d.Number > 0)
}

// auditTermination writes the submitted name of an upload that was ended, and whose it was.
func (o *Observer) auditTermination(upload *resumable.Record, actor item.Actor, err error) {
	c := Change{
		Action: "terminate", Kind: upload.ItemKind(), Alias: upload.Alias, Filename: upload.Filename, Size: upload.Length,
		Actor: actor, Result: resultOK,
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, resumable.ErrUnknown):
		c.Result = "there is no such upload"
	case err != nil:
		c.Result = "the storage did not remove the upload"
	}
	o.writeAudit(c, err == nil, zap.Int64("size", upload.Length), zap.String("owner", upload.Owner))
}

// Configured records a change of an entry of the configuration, which is running now.
func (o *Observer) Configured(actor item.Actor, action, section, name string, options []string) {
	o.writeAudit(Change{
		Action: action, Section: section, Name: name, Options: strings.Join(options, ", "), Size: -1, Actor: actor, Result: resultOK,
	}, true)
}

// writeAudit writes a line of the logger "media.audit", and keeps a change that was made. There is
// one for each item that was stored, replaced, moved, copied or deleted, for each that could not be
// deleted, for each set of items that was deleted, for each resumable upload that was ended on
// request, and for each failure of a refused request. There is also one for each change of the
// configuration in the panel.
func (o *Observer) writeAudit(c Change, made bool, more ...zap.Field) {
	message := "item"
	if c.Section != "" {
		message = "configuration"
	}
	if line := o.audit.Check(zap.InfoLevel, message); line != nil {
		line.Write(c.fields(more...)...)
	}
	if made {
		o.changes.add(c)
	}
}
