package api

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddymedia/media/caddymedia/mediaapp"
)

const hashOption = "password_hash"

const (
	saltBytes = 16
	saltField = 4 // of "$argon2id$v=19$m=47104,t=1,p=1$<salt>$<key>"
)

// hashOf hashes a password with Caddy's argon2id module at its default cost. The module takes the
// cost from a hash, so the hash is made from the module's own fake hash with another salt.
func hashOf(password string) (string, error) {
	info, err := caddy.GetModule("http.authentication.hashes.argon2id")
	if err != nil {
		return "", fmt.Errorf("looking for the password hash: %w", err)
	}
	module, ok := info.New().(caddyauth.Hasher)
	if !ok {
		return "", errors.New("the password hash cannot hash")
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // it never fails
	fields := strings.Split(string(module.FakeHash()), "$")
	if len(fields) <= saltField {
		return "", errors.New("the password hash is of an unknown form")
	}
	fields[saltField] = base64.RawStdEncoding.EncodeToString(salt)
	hasher, _, err := caddyauth.DecodeHash([]byte(strings.Join(fields, "$")))
	if err != nil {
		return "", fmt.Errorf("reading the cost of the password hash: %w", err)
	}
	hash, err := hasher.Hash([]byte(password))
	return string(hash), err
}

// endTokens removes the tokens of an account that was deleted or has a new password. These tokens
// are already invalid, unless the account is restored unchanged.
func (e *editor) endTokens(ctx context.Context, apiKey string) {
	ctx = context.WithoutCancel(ctx)
	app, release, err := mediaapp.AcquireActive()
	if err == nil {
		defer release()
		_, err = app.Service().Issuer().Revoke(ctx, apiKey)
	}
	if err != nil {
		e.log.Error("removing the tokens of an account", zap.String("account", apiKey), zap.Error(err))
	}
}
