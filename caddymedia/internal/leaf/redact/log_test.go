package redact_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/redact"
)

func TestLogger(t *testing.T) {
	t.Parallel()
	const secret = "hidden-password"
	failed := errors.New("dialing https://user:" + secret + "@host")
	for name, write := range map[string]func(*slog.Logger){
		"message": func(log *slog.Logger) { log.Info("the password is " + secret) },
		"text":    func(log *slog.Logger) { log.Info("login", "password", secret) },
		"error":   func(log *slog.Logger) { log.Error("login", "error", failed) },
		"list":    func(log *slog.Logger) { log.Info("login", "tried", []string{"a", secret}) },
		"group":   func(log *slog.Logger) { log.Info("login", slog.Group("account", "error", failed)) },
		"with":    func(log *slog.Logger) { log.With("error", failed).Info("login") },
		"within":  func(log *slog.Logger) { log.WithGroup("account").Info("login", "error", failed) },
		"value":   func(log *slog.Logger) { log.Info("login", "value", valuer(secret)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			write(redact.Logger(slog.New(slog.NewTextHandler(&out, nil)), func() redact.Redactor { return redact.New(secret) }))
			if text := out.String(); strings.Contains(text, secret) || !strings.Contains(text, redact.Hidden) {
				t.Error(text)
			}
		})
	}
}

func TestLoggerWithoutSecrets(t *testing.T) {
	t.Parallel()
	var plain, shown bytes.Buffer
	drop := &slog.HandlerOptions{ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
		if attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return attr
	}}
	redacted := redact.Logger(slog.New(slog.NewJSONHandler(&shown, drop)), func() redact.Redactor { return redact.Redactor{} })
	for _, log := range []*slog.Logger{slog.New(slog.NewJSONHandler(&plain, drop)), redacted} {
		log.Debug("not enabled")
		log.Warn("storage unreachable", "storage", "main", "tries", 3, "error", errors.New("refused"), "list", []int{1})
	}
	if plain.String() != shown.String() {
		t.Errorf("%s, want %s", &shown, &plain)
	}
}

type valuer string

func (v valuer) LogValue() slog.Value { return slog.StringValue(string(v)) }
