package mediaapp

import (
	"log/slog"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/caddymedia/redact"
)

// Secrets returns all secrets of the storages, the accounts and the token store, both as configured
// and with their placeholders expanded.
func (a *App) Secrets() []string {
	secrets := make([]string, 0, len(a.drivers)+len(a.Accounts))
	for _, module := range a.drivers {
		secrets = append(secrets, SecretsOf(module)...)
	}
	secrets = append(secrets, SecretsOf(a.tokens)...)
	for _, account := range a.Accounts {
		secrets = append(secrets, WithExpanded(account.PasswordHash)...)
	}
	return secrets
}

// SecretsOf returns the secrets of a driver or a token store.
func SecretsOf(module interface{ Secrets() []string }) []string {
	raw := module.Secrets()
	secrets := make([]string, 0, 2*len(raw))
	for _, secret := range raw {
		secrets = append(secrets, WithExpanded(secret)...)
	}
	return secrets
}

// WithExpanded returns the text of a secret, and its expanded text if that differs.
func WithExpanded(raw string) []string {
	expand := modules.Expander()
	expanded := expand.Text("", raw)
	if expand.Err() != nil || expanded == raw {
		return []string{raw}
	}
	return []string{raw, expanded}
}

// hidden holds the secrets that are redacted in the log. They are known after all modules are
// loaded.
type hidden struct {
	redactor atomic.Pointer[redact.Redactor]
}

func (h *hidden) set(secrets []string) { h.redactor.Store(new(redact.New(secrets...))) }

func (h *hidden) get() redact.Redactor {
	if redactor := h.redactor.Load(); redactor != nil {
		return *redactor
	}
	return redact.Redactor{}
}

// Redacted returns log without the secrets of the configuration.
func (a *App) Redacted(log *slog.Logger) *slog.Logger { return redact.Logger(log, a.hidden.get) }
