package mediaapp

import (
	"encoding/json"
	"log/slog"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/redact"
	"github.com/caddymedia/media/storagedrivers/options"
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

// SecretsOf returns the secrets of a driver or a token store. If the module does not describe its
// options, all its texts count as secrets.
func SecretsOf(module any) []string {
	raw := textsOf(module)
	if described, ok := module.(options.Described); ok {
		raw = described.Schema().Secrets(module)
	}
	secrets := make([]string, 0, 2*len(raw))
	for _, secret := range raw {
		secrets = append(secrets, WithExpanded(secret)...)
	}
	return secrets
}

// WithExpanded returns the text of a secret, and its expanded text if that differs.
func WithExpanded(raw string) []string {
	var expand options.Expander
	expanded := expand.Text("", raw)
	if expand.Err() != nil || expanded == raw {
		return []string{raw}
	}
	return []string{raw, expanded}
}

// textsOf returns all texts in the JSON of a configuration.
func textsOf(config any) []string {
	var value any
	if raw, err := json.Marshal(config); err != nil || json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return textsIn(value)
}

func textsIn(value any) []string {
	var texts []string
	switch v := value.(type) {
	case string:
		if v != "" {
			texts = append(texts, v)
		}
	case []any:
		for _, element := range v {
			texts = append(texts, textsIn(element)...)
		}
	case map[string]any:
		for _, element := range v {
			texts = append(texts, textsIn(element)...)
		}
	}
	return texts
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
