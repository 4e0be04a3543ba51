package plugin

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// TestOwnPassword: the first start makes the password, which the log has, and the file with its
// hash. Later ones take the file as it is.
func TestOwnPassword(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := &App{log: slog.New(slog.NewTextHandler(&log, nil))}
	file := filepath.Join(t.TempDir(), "media-data", "hash")
	placeholder, err := a.OwnPassword("{new_password." + file + "}")
	if want := "{file." + file + "}"; err != nil || placeholder != want {
		t.Fatalf("%s, error %v, want %s", placeholder, err, want)
	}
	hash, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	password := regexp.MustCompile(`password=([A-Z2-7]{24,}) `).FindStringSubmatch(log.String())
	if len(password) != 2 || strings.Contains(log.String(), string(hash)) {
		t.Fatalf("the log has no password, or its hash: %s", log.String())
	}
	if ok, err := new(caddyauth.Argon2idHash).Compare(hash, []byte(password[1])); !ok || err != nil {
		t.Errorf("the file has not the hash of the password: %v", err)
	}
	log.Reset()
	again, err := a.OwnPassword("{new_password." + file + "}")
	if now, _ := os.ReadFile(file); err != nil || again != placeholder || log.Len() > 0 || !bytes.Equal(now, hash) {
		t.Errorf("again: %s, error %v, log %q, hash %s", again, err, log.String(), now)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
		t.Errorf("files %v, error %v", left, err)
	}
}

// TestOwnPasswordOthers: other hashes stay as they are, and a file that cannot be made is an error.
func TestOwnPasswordOthers(t *testing.T) {
	t.Parallel()
	a := &App{log: slog.New(slog.DiscardHandler)}
	for _, hash := range []string{"", "$argon2id$", "{env.HASH}", "{file.hash}", "{new_password.open", "{new_password}"} {
		if got, err := a.OwnPassword(hash); err != nil || got != hash {
			t.Errorf("%q became %q, error %v", hash, got, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.OwnPassword("{new_password." + filepath.Join(file, "below") + "}"); err == nil || !strings.HasPrefix(err.Error(), "making a password: ") {
		t.Errorf("error %v", err)
	}
}
