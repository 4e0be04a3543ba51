package media

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestResumableOptions: the options and their defaults reach the service.
func TestResumableOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given    Resumable
		want     service.Resumable
		maxBytes int64
	}{
		{Resumable{}, service.Resumable{Expires: 24 * time.Hour, MaxOpen: 100}, 1 << 30},
		{Resumable{Off: true}, service.Resumable{Off: true, Expires: 24 * time.Hour, MaxOpen: 100}, 0},
		{
			Resumable{Storage: "default", Expires: options.Duration(time.Second), MaxOpen: 1, MaxBytes: 64 << 20},
			service.Resumable{Storage: "default", Expires: time.Second, MaxOpen: 1, MaxBytes: 64 << 20},
			64 << 20,
		},
	} {
		if got := c.given.parts(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.given, got, c.want)
		}
		config := configOf(t)
		config.Resumable = c.given
		uploads := start(t, config).core.Uploads()
		switch {
		case (uploads == nil) != c.given.Off:
			t.Errorf("%+v: resumable uploads are off: %t", c.given, uploads == nil)
		case uploads != nil && (uploads.Expires != c.want.Expires || uploads.MaxOpen != c.want.MaxOpen || uploads.MaxBytes != c.maxBytes):
			t.Errorf("%+v: got %+v, want %+v", c.given, uploads, c.want)
		}
	}
}

func TestResumableErrors(t *testing.T) {
	t.Parallel()
	for want, given := range map[string]Resumable{
		`resumable: storage: there is no storage "far"; there are default`: {Storage: "far"},
		"resumable: expires is a duration above zero":                      {Expires: -1},
		"resumable: max_open is a number above zero":                       {MaxOpen: -1},
		"resumable: max_bytes is less than twice the largest max_size":     {MaxBytes: 64<<20 - 1},
	} {
		config := configOf(t)
		config.Resumable = given
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestHoldNeedsUploads: uploads of users are held as resumable ones.
func TestHoldNeedsUploads(t *testing.T) {
	t.Parallel()
	config := configOf(t)
	config.Accounts = map[string]*Account{"members": {Trust: userID, Hold: options.Duration(time.Hour)}}
	config.Resumable = Resumable{Off: true}
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), `account "members": hold: it needs resumable uploads`) {
		t.Error(err)
	}
}

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
		{Account{Trust: id, Hold: options.Duration(168 * time.Hour)}, ""},
		{Account{Trust: id, Hold: options.Duration(time.Minute - 1)}, "hold: it is from 1m to 168h"},
		{Account{PasswordHash: "x", Hold: options.Duration(time.Hour)}, "hold: it is for users"},
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

// TestSchemas: all options are documented, and the right ones are secret.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*options.Schema{
		"settings": Schemas.Settings, "account": Schemas.Account, "storage": Schemas.Storage, "image alias": Schemas.ImageAlias,
		"file alias": Schemas.FileAlias, "rendition": Schemas.Rendition, "limits": Schemas.Limits, "downloads": Schemas.Downloads,
		"resumable": Schemas.Resumable,
	} {
		s = s.Documented()
		if err := s.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Help == "" {
			t.Errorf("%s has no help", name)
		}
		for _, o := range s.Options {
			if want := slices.Contains([]string{"password_hash", "s3_secret", "signing_key"}, o.Name); o.Secret != want {
				t.Errorf("%s of %s: secret %t, want %t", o.Name, name, o.Secret, want)
			}
			if o.Default == "" && !o.Required {
				t.Errorf("%s of %s says nothing of its default", o.Name, name)
			}
		}
	}
}

// TestRightsAreWords: the form of an account offers each right.
func TestRightsAreWords(t *testing.T) {
	t.Parallel()
	for _, o := range Schemas.Account.Options {
		if rights := access.Rights(); o.Name == "may" && fmt.Sprint(o.Words) != fmt.Sprint(rights) {
			t.Errorf("the words are %q, want %q", o.Words, rights)
		}
	}
}

func TestSchemaValues(t *testing.T) {
	t.Parallel()
	off := false
	for _, c := range []struct {
		name   string
		schema *options.Schema
		config any
		want   map[string]any
	}{
		{"storage", Schemas.Storage, &Storage{Name: "a", Sanitize: &off}, map[string]any{"sanitize": false}},
		{"account", Schemas.Account, &Account{PasswordHash: "x"}, map[string]any{"password_hash": "set", "s3_secret": "not set"}},
		{
			"image alias", Schemas.ImageAlias,
			&ImageAlias{
				AliasOptions: AliasOptions{MaxSize: 5, Redirect: &Redirect{To: "presigned", Lifetime: options.Duration(2 * time.Hour)}},
				WebP:         &WebP{Quality: 70}, Negotiate: true,
			},
			map[string]any{
				"max_size": int64(5), "redirect": map[string]any{"to": "presigned", "lifetime": "2h"},
				"webp": map[string]any{"quality": 70}, "negotiate": true,
			},
		},
		{
			"file alias", Schemas.FileAlias, &FileAlias{Extensions: []string{"pdf"}},
			map[string]any{"extensions": []string{"pdf"}},
		},
	} {
		if got := c.schema.Values(c.config); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRenditionErrors(t *testing.T) {
	t.Parallel()
	many := map[string]*Rendition{}
	for i := range 17 {
		many[fmt.Sprint("r", i)] = &Rendition{Width: 1}
	}
	for want, renditions := range map[string]map[string]*Rendition{
		`rendition "A": a name is 1 to 64`:                                     {"A": {Width: 1}},
		`renditions.a: width or height is missing`:                             {"a": {Fit: "cover"}, "b": {}},
		`renditions.b: width or height is missing`:                             {"a": {Height: 1}, "b": nil},
		`renditions.a: width and height are from 1 to 16383`:                   {"a": {Width: 16384}},
		`renditions.a.width is a number above zero`:                            {"a": {Width: -1}},
		`renditions.a.format is one of same, webp, jpeg, png, not "gif"`:       {"a": {Width: 1, Format: "gif"}},
		`renditions.a: quality is a number from 1 to 100, not 101`:             {"a": {Width: 1, Quality: 101}},
		`image alias "content": renditions are at most 16 in an alias, not 17`: many,
	} {
		config := configOf(t)
		config.ImageAliases["content"].Renditions = renditions
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestRenditionFolders: no alias lies in the folder of renditions, which is outside of its own.
func TestRenditionFolders(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"img/content@renditions":     `prefix: the folder "content@renditions" is reserved for renditions`,
		"img/Content@Renditions/1/x": `prefix: the folder "Content@Renditions" is reserved for renditions`,
		"img/@renditions/":           `prefix: the folder "@renditions" is reserved for renditions`,
		"img/content@renditions2":    "",
	} {
		config := configOf(t)
		config.FileAliases["content"].Prefix = prefix
		s, err := New(config)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", prefix, err, want)
		}
		if err == nil {
			_ = s.Close()
		}
	}
	config := configOf(t)
	config.ImageAliases = map[string]*ImageAlias{
		"content": {AliasOptions: AliasOptions{Prefix: "/"}, Renditions: map[string]*Rendition{"a": {Width: 1}}},
	}
	config.FileAliases = nil
	if _, err := New(config); err == nil || !strings.Contains(err.Error(), "prefix other than /") {
		t.Errorf("at the root: %v", err)
	}
}

func TestImageSrcset(t *testing.T) {
	t.Parallel()
	config := configOf(t)
	config.ImageAliases["content"].Renditions = map[string]*Rendition{
		"small": {Width: 20}, "other": {Width: 20}, "w": {Widths: []string{"60", "200"}},
		"tall": {Height: 10}, "square": {Width: 50, Height: 50, Fit: "cover"}, "half": {Width: 50, Height: 20, Fit: "cover"},
	}
	s := start(t, config)
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 40, 100)), nil); err != nil {
		t.Fatal(err)
	}
	turned := "\xFF\xD8\xFF\xE1\x00\x22Exif\x00\x00MM\x00\x2A\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00" +
		photo.String()[2:]
	storage, _ := s.core.Storage("default")
	for key, content := range map[string]string{
		"img/content/a b,c.jpg": turned, "img/content/a.svg": `<svg width="2in" viewBox="0 0 4 3"/>`, "img/content/bad.jpg": "no picture", "img/content/a.webp": "RIFF",
	} {
		if _, err := storage.Put(t.Context(), key, strings.NewReader(content), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const photoSet = "/static/img/content@other/a%20b%2Cc.jpg 20w, /static/img/content@half/a%20b%2Cc.jpg 50w, " +
		"/static/img/content@w60/a%20b%2Cc.jpg 60w, /static/img/content/a%20b%2Cc.jpg 100w"
	for filename, want := range map[string]string{
		"a b,c.jpg": photoSet, // without the square, which has another shape
		"a.svg":     "/static/img/content/a.svg",
		"bad.jpg":   "", "none.jpg": "", "../x.jpg": "", "a b,c.jpg.webp": "",
	} {
		for range 2 { // the second time from memory
			if got, err := s.ImageSrcset(t.Context(), "content", filename); got != want || err != nil {
				t.Errorf("%s: %q, %v, want %q", filename, got, err, want)
			}
		}
	}
	if _, err := s.ImageSrcset(t.Context(), "none", "a.jpg"); err == nil {
		t.Error("an unknown alias is no error")
	}
	for name, want := range map[string]*Size{
		"content a b,c.jpg": {100, 40}, "content@square a b,c.jpg": {50, 40}, "content@tall a b,c.jpg": {25, 10},
		"content a.svg": {192, 144}, "content@square a.svg": {192, 144}, "content bad.jpg": nil, "content@square none.jpg": nil,
	} {
		alias, filename, _ := strings.Cut(name, " ")
		got, err := s.ImageSize(t.Context(), alias, filename)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	for _, alias := range []string{"none", "content@none"} {
		if _, err := s.ImageSize(t.Context(), alias, "a.svg"); err == nil {
			t.Errorf("%s is no error", alias)
		}
	}
}
