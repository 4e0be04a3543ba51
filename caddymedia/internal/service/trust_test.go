package service

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
)

// TestFinishAloneForUsers: a service finishes the upload of a user without him as long as the account
// has its users, its rights and the folder.
func TestFinishAloneForUsers(t *testing.T) {
	t.Parallel()
	const users = "users/" + UserID
	for _, c := range []struct {
		name         string
		trusts       bool // the account has users
		below        string
		rights       []access.Right
		user, folder string
		want         bool
	}{
		{"unchanged", true, users, nil, "Al/ice", "", true},
		{"below", true, users, nil, "alice", "users/alice/x", true},
		{"no folders any more", true, "", nil, "alice", "users/alice", true},
		{"other folder", true, "people/" + UserID, nil, "alice", "users/alice", false},
		{"folder of another user", true, users, nil, "bob", "users/alice", false},
		{"no users any more", false, "", nil, "alice", "users/alice", false},
		{"of the account before it had users", true, users, nil, "", "users/alice", false},
		{"fewer rights", true, "", []access.Right{access.List}, "alice", "users/alice", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			account := access.Account{APIKey: "members", PasswordHash: "x", Rights: c.rights}
			parts := partsOf(t)
			if c.trusts {
				account.PasswordHash, account.Trusted = "", true
				parts.Trust = &Trust{Placeholder: UserID, Users: account, Folder: c.below}
			}
			parts.Accounts = []access.Account{account}
			s := start(t, parts)
			if c.folder == "" {
				c.folder = s.Trust().Account(c.user).Folder
			}
			u := &resumable.Upload{Record: resumable.Record{Origin: "http", Account: "members", User: c.user, Alias: "content", SubFolder: c.folder}}
			if _, err := s.rightsAlone(t.Context(), u, false); (err == nil) != c.want {
				t.Errorf("error %v, want none: %t", err, c.want)
			}
		})
	}
}
