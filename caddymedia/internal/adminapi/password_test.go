package adminapi

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

func TestHash(t *testing.T) {
	t.Parallel()
	password, other := rand.Text(), rand.Text()
	hash, err := hashOf(password)
	if err != nil {
		t.Fatal(err)
	}
	otherHash, err := hashOf(other)
	if err != nil {
		t.Fatal(err)
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
