package mediacmd

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// TestAccount: the output is pasted into a Caddyfile, and its password logs in.
func TestAccount(t *testing.T) { // not parallel: Caddy provisions one configuration at a time
	out, _, err := run(t, accountCommand(), "shop.2")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], "The password of shop.2: keep it, and remove") || !strings.HasPrefix(lines[2], "account shop.2 $argon2id$") {
		t.Fatalf("output\n%s", out)
	}
	password := strings.TrimPrefix(lines[1], "#   ")
	file := filepath.Join(t.TempDir(), "Caddyfile")
	config := "{\nmedia {\ntokens memory\nstorage default {\ndriver local " + t.TempDir() + "\n}\n" + out + "}\n}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := (&configSource{file: file}).read()
	if err != nil {
		t.Fatal(err)
	}
	app, err := provision(raw)
	if err != nil {
		t.Fatal(err)
	}
	defer app.Cleanup()
	if _, _, err := app.Service().Issuer().Issue(t.Context(), "shop.2", password, netip.Addr{}); err != nil {
		t.Errorf("logging in with %q: %v", password, err)
	}
}

func TestAccountJSON(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, accountCommand(), "shop", "--json")
	var got accountResult
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Name != "shop" || got.Password == "" || !strings.HasPrefix(got.Hash, "$argon2id$") {
		t.Errorf("%s, error %v", out, err)
	}
}

// TestAccountHashFile: the first call makes a password and the file with its hash, and others
// change nothing.
func TestAccountHashFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new", "hash")
	out, _, err := run(t, accountCommand(), "shop", "--hash-file", file)
	lines := strings.Split(out, "\n")
	hash, readErr := os.ReadFile(file)
	if err != nil || readErr != nil || len(lines) != 3 {
		t.Fatalf("%q, errors %v, %v", out, err, readErr)
	}
	if ok, err := new(caddyauth.Argon2idHash).Compare(hash, []byte(strings.TrimSpace(lines[1]))); !ok || err != nil {
		t.Errorf("the file has not the hash of the password: %v", err)
	}
	out, _, err = run(t, accountCommand(), "shop", "--hash-file", file, "--json")
	if again, _ := os.ReadFile(file); err != nil || !bytes.Equal(again, hash) || !strings.Contains(out, `"password":""`) {
		t.Errorf("again: %q, error %v, the hash was %s and is %s", out, err, hash, again)
	}
	if _, _, err := run(t, accountCommand(), "shop", "--hash-file", filepath.Join(file, "below")); err == nil {
		t.Error("a file below a file is no error")
	}
}

// TestAccountNames: a name that a Caddyfile refuses is refused.
func TestAccountNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "my shop", "a/b", "{env.X}", "shop\naccount other", "$HOME", `"x"`, strings.Repeat("a", 129)} {
		if out, _, err := run(t, accountCommand(), name); err == nil || !strings.Contains(err.Error(), "an API key is 1 to 128 of") || out != "" {
			t.Errorf("%q: %q, error %v", name, out, err)
		}
	}
	if _, _, err := run(t, accountCommand()); err == nil || !strings.HasPrefix(err.Error(), "account needs <name>") {
		t.Errorf("error %v", err)
	}
}
