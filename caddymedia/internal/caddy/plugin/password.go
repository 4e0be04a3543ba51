package plugin

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// OwnPassword returns the placeholder of the file whose hash the placeholder {new_password.<file>}
// stands for. Without such a file it makes a password, which only the log has, and the file. It
// returns other hashes as they are.
func (a *App) OwnPassword(hash string) (string, error) {
	rest, begins := strings.CutPrefix(hash, "{new_password.")
	file, ends := strings.CutSuffix(rest, "}")
	if !begins || !ends {
		return hash, nil
	}
	password, err := FirstPassword(file)
	if err != nil {
		return "", fmt.Errorf("making a password: %w", err)
	}
	if password != "" {
		a.log.Warn("made a password: keep it, because it is not shown again; the file has its hash", "password", password, "file", file)
	}
	return "{file." + file + "}", nil
}

// FirstPassword makes a password and a file with its hash. It returns "" if the file is there.
func FirstPassword(file string) (password string, err error) {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	password, hash, err := NewPassword()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	unfinished, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"-*")
	if err != nil {
		return "", err
	}
	_, err = unfinished.WriteString(hash)
	err = errors.Join(err, unfinished.Sync(), unfinished.Close())
	if err == nil {
		err = os.Rename(unfinished.Name(), file)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(unfinished.Name()))
	}
	return password, nil
}

// NewPassword returns a random password and its hash.
func NewPassword() (password, hash string, err error) {
	password = rand.Text() // 130 bits, without digits that look like letters
	hash, err = hashOf(password)
	return password, hash, err
}

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
