package mediacmd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// tokenFile keeps the token of an account between runs, readable by its owner only. A failure to
// read or write it only costs a login.
type tokenFile struct {
	path   string
	server string
	apiKey string
}

// keptToken is the content of the file.
type keptToken struct {
	Server    string `json:"server"`
	Account   string `json:"account"`
	Token     string `json:"token"`
	ExpiresAt int64  `json:"expires_at"` // Unix seconds
}

func newTokenFile(server, apiKey string) tokenFile {
	sum := sha256.Sum256([]byte(server + "\n" + apiKey))
	name := hex.EncodeToString(sum[:16]) + ".json"
	return tokenFile{filepath.Join(caddy.AppDataDir(), appName, "upload_tokens", name), server, apiKey}
}

// read returns the kept token, or "" if there is none or it expires soon.
func (f tokenFile) read(now time.Time) string {
	const while = 30 * time.Second
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return ""
	}
	var kept keptToken
	if json.Unmarshal(raw, &kept) != nil || kept.Server != f.server || kept.Account != f.apiKey ||
		!time.Unix(kept.ExpiresAt, 0).After(now.Add(while)) {
		return ""
	}
	return kept.Token
}

// write stores a token. It replaces the file atomically, because several uploads may run at a time.
func (f tokenFile) write(token string, expires time.Time) {
	if raw, err := json.Marshal(keptToken{f.server, f.apiKey, token, expires.Unix()}); err == nil {
		_ = replaceFile(f.path, raw) // only costs a login
	}
}
