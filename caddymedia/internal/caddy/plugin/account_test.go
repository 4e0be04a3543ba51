package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
)

// TestPublicPassword: the hash that the log and the panel warn of is that of Caddyfile.example, and
// its password is the documented one.
func TestPublicPassword(t *testing.T) {
	t.Parallel()
	const password = "only for trying out"
	if ok, err := new(caddyauth.Argon2idHash).Compare([]byte(access.PublicHash), []byte(password)); !ok || err != nil {
		t.Errorf("%q is not its password: %v", password, err)
	}
	for file, parts := range map[string][]string{
		"Caddyfile.example": {`"` + password + `"`, "account try-out {$MEDIA_PASSWORD_HASH:" + access.PublicHash + "} {", "\t\t\t\tadmin {$MEDIA_PASSWORD_HASH:" + access.PublicHash + "}\n"},
		"README.md":         {password},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", file, part)
			}
		}
		if got, want := strings.Count(string(text), "$argon2id$"), strings.Count(string(text), access.PublicHash); got != want {
			t.Errorf("%s has %d other hashes", file, got-want)
		}
	}
}

// TestNewPassword: a password is long, its hash has Caddy's cost, and no two have the same salt.
func TestNewPassword(t *testing.T) {
	t.Parallel()
	password, hash, err := NewPassword()
	if err != nil {
		t.Fatal(err)
	}
	other, otherHash, err := NewPassword()
	if err != nil {
		t.Fatal(err)
	}
	if len(password) < 24 || strings.Trim(password, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" { // 5 bits a letter
		t.Errorf("password %s", password)
	}
	var module caddyauth.Argon2idHash
	if ok, err := module.Compare([]byte(hash), []byte(password)); !ok || err != nil {
		t.Errorf("the hash %s is not that of the password: %v", hash, err)
	}
	if ok, _ := module.Compare([]byte(hash), []byte(other)); ok {
		t.Error("the hash fits another password")
	}
	fields, others := strings.Split(hash, "$"), strings.Split(otherHash, "$")
	fake := strings.Split(string(module.FakeHash()), "$")
	if fields[3] != fake[3] {
		t.Errorf("the cost is %s, want Caddy's %s", fields[3], fake[3])
	}
	if fields[4] == others[4] || fields[4] == fake[4] || len(fields[4]) != len(fake[4]) {
		t.Errorf("the salts are %s and %s", fields[4], others[4])
	}
}

// manyAccounts parses a global option of n accounts.
func manyAccounts(t testing.TB, n int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("media {\n")
	for i := range n {
		fmt.Fprintf(&b, "account site-%d %s {\n aliases content\n}\n", i, access.PublicHash)
	}
	b.WriteString("}\n")
	if err := new(App).UnmarshalCaddyfile(caddyfile.NewTestDispenser(b.String())); err != nil {
		t.Fatal(err)
	}
}

// TestManyAccounts: the cost of an account does not grow with the number of those before it.
func TestManyAccounts(t *testing.T) { // not parallel: it measures the process
	allocated := func(n int) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		manyAccounts(t, n)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	allocated(1)
	if few, many := allocated(500), allocated(2000); many > 6*few {
		t.Errorf("2,000 accounts allocate %.1f times the bytes of 500", many/few)
	}
}

func BenchmarkAccounts(b *testing.B) {
	for _, n := range []int{1000, 8000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				manyAccounts(b, n)
			}
		})
	}
}
