package media

import (
	"strings"
	"testing"
)

// TestTrustErrors: the error names the option at fault.
func TestTrustErrors(t *testing.T) {
	t.Parallel()
	const id, header = userID, "Remote-User"
	for _, c := range []struct {
		account Account
		want    string // the beginning of the error, after the account; empty for none
	}{
		{Account{Trust: id}, ""},
		{Account{Trust: "{http.auth.user.sub}", SubFolder: id}, ""},
		{Account{TrustHeader: header, SubFolder: "users/" + id + "/files"}, ""},
		{Account{}, "password_hash is missing"},
		{Account{Trust: id, PasswordHash: "x"}, "password_hash: an account with trust"},
		{Account{TrustHeader: header, PasswordHash: "x"}, "password_hash: an account with trust"},
		{Account{Trust: id, TrustHeader: header}, "trust_header: an account has either"},
		{Account{Trust: header}, "trust: it is a placeholder"},
		{Account{Trust: "{http.request.header.Remote-User}"}, "trust: it is a placeholder"},
		{Account{Trust: "{http.auth.user.}"}, "trust: it is a placeholder"},
		{Account{Trust: id + id}, "trust: it is a placeholder"},
		{Account{Trust: "x" + id}, "trust: it is a placeholder"},
		{Account{TrustHeader: id}, "trust_header: it is the name of a header"},
		{Account{TrustHeader: "Remote User"}, "trust_header: it is the name of a header"},
		{Account{TrustHeader: "COOKIE"}, "trust_header: COOKIE has a credential"},
		{Account{PasswordHash: "x", SubFolder: "users/" + id}, "sub_folder: it is for users"},
		{Account{Trust: id, SubFolder: "users"}, "sub_folder: {http.auth.user.id} is one of its folders"},
		{Account{Trust: id, SubFolder: "users/x" + id}, "sub_folder: {http.auth.user.id} is one of its folders"},
		{Account{Trust: id, SubFolder: id + "/" + id}, "sub_folder: {http.auth.user.id} is one of its folders"},
		{Account{Trust: id, SubFolder: "users/" + id + "/"}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: "/users/" + id}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: "Users/" + id}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: "a b/" + id}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: "../" + id}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: "@uploads/" + id}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: "x.php/" + id}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: "{env.X}/" + id}, "sub_folder: besides"},
		{Account{Trust: id, SubFolder: strings.Repeat("a", 195) + "/" + id}, "sub_folder: besides"},
	} {
		config := configOf(t)
		config.Accounts = map[string]*Account{"members": &c.account}
		s, err := New(config)
		if err == nil {
			_ = s.Close()
		}
		if want := `account "members": ` + c.want; (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c.account, err, want)
		}
	}
	config := configOf(t)
	config.Accounts = map[string]*Account{"a": {Trust: id}, "b": {PasswordHash: "x"}, "c": {TrustHeader: header}}
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), `account "c": trust: only one account`) {
		t.Errorf("two accounts with users: error %v", err)
	}
}
