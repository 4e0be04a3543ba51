package redact

import (
	"context"
	"log/slog"
)

// Logger returns log with the secrets of a redactor hidden in messages, texts and errors. It calls
// redactor for each message, because secrets may be read after the logger is made.
func Logger(log *slog.Logger, redactor func() Redactor) *slog.Logger {
	return slog.New(handler{log.Handler(), redactor})
}

type handler struct {
	slog.Handler
	redactor func() Redactor
}

func (h handler) Handle(ctx context.Context, message slog.Record) error {
	redactor := h.redactor()
	shown := slog.NewRecord(message.Time, message.Level, redactor.Text(message.Message), message.PC)
	message.Attrs(func(attr slog.Attr) bool {
		shown.AddAttrs(redactor.attr(attr))
		return true
	})
	return h.Handler.Handle(ctx, shown)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(h.redactor().attrs(attrs)), h.redactor}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.redactor}
}

func (r Redactor) attrs(attrs []slog.Attr) []slog.Attr {
	shown := make([]slog.Attr, len(attrs))
	for i, attr := range attrs {
		shown[i] = r.attr(attr)
	}
	return shown
}

func (r Redactor) attr(attr slog.Attr) slog.Attr {
	attr.Value = attr.Value.Resolve()
	if kind := attr.Value.Kind(); kind == slog.KindGroup {
		attr.Value = slog.GroupValue(r.attrs(attr.Value.Group())...)
	} else if kind == slog.KindString || kind == slog.KindAny {
		text := attr.Value.String()
		if shown := r.Text(text); shown != text {
			attr.Value = slog.StringValue(shown)
		}
	}
	return attr
}
