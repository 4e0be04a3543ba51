package ftp

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/foreigntest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestForeignServers: the answers of servers of other protocols are errors.
func TestForeignServers(t *testing.T) {
	t.Parallel()
	foreigntest.Run(t, 1000, func(t *testing.T, address string) storagedrivers.Driver {
		return open(t, Config{Address: address, User: "u", Password: "secret", Timeout: options.Duration(time.Minute)})
	})
}

// TestForeignListings: a listing that is none is an error of List and Check, and not an empty
// folder.
func TestForeignListings(t *testing.T) {
	t.Parallel()
	odd := []string{
		"total 4\r\n<html>", "total 4\r\nwhat\r\n", "ls: cannot open .\r\n", "type=file;size=x; key\r\n",
		"type=file;modify=today; key\r\n", "type=file;size=-5; key\r\n", "=;= key\r\n", ";;;\r\n", "-rw-r--r-- key\r\n",
		"-rw-r--r-- 1 user group five Jan 01 10:00 key\r\n", "-rw-r--r-- 1 user group 5 Foo 01 10:00 key\r\n",
		"01-02-99 10:00AM <WHAT> key\r\n", "type=file;size=5; a\r\ntype=file;size=x; key\r\n",
	}
	for _, facts := range []bool{false, true} {
		t.Run(fmt.Sprint(facts), func(t *testing.T) {
			t.Parallel()
			var now string
			f := (&fake{facts: facts, listed: func(string) string { return now }}).start(t)
			d := open(t, f.config())
			for _, now = range append(odd, foreigntest.Answers(200)...) {
				if strings.TrimSpace(now) == "" {
					continue // an empty folder
				}
				page, err := d.List(t.Context(), storagedrivers.ListOptions{Limit: 10})
				test.Fails(t, err, fmt.Sprintf("%q was listed: %v", now, page))
				test.IsNot(t, err, fs.ErrNotExist, now)
				test.Fails(t, open(t, f.config()).Check(t.Context()), fmt.Sprintf("the check with %q", now))
			}
			now = ""
			page, err := d.List(t.Context(), storagedrivers.ListOptions{Limit: 10})
			test.Must(t, err)
			test.Equal(t, len(page.Objects), 0, "objects of an empty folder")
			test.Must(t, d.Check(t.Context()))
		})
	}
}

// foreignReplies do not fit any command.
var foreignReplies = []string{
	"230 welcome", "215 UNIX", "199 what", "299 what", "399 what", "699 what", "000 what", "HTTP/1.1 200 OK", "\xff\xfe", " ", "2", "22x y",
	"220-mail\r\n220 ESMTP", "SSH-2.0-OpenSSH_9.2", "*2\r\n$3", strings.Repeat("x", 5000),
}

// TestForeignReplies: a reply that does not fit its command is an error, unless the operation does
// not need it. Nothing is lost or made up.
func TestForeignReplies(t *testing.T) {
	t.Parallel()
	commands := []string{
		"USER", "PASS", "FEAT", "TYPE", "CWD", "EPSV", "MLSD", "LIST", "MLST", "SIZE", "MDTM", "STOR", "RETR", "RNFR", "RNTO", "DELE", "MKD", "NOOP",
	}
	for _, wrong := range commands {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			for i, reply := range foreignReplies {
				f := &fake{facts: i%2 == 0, mfmt: true}
				f.before = func(_ *session, command, _ string) string {
					if command == wrong {
						return reply
					}
					return ""
				}
				config := f.start(t).config()
				config.Timeout = options.Duration(time.Second) // some replies have no end
				test.Must(t, os.WriteFile(filepath.Join(f.root, "key"), []byte("content"), 0o600))
				d := open(t, config)
				foreignReply(t, f, d, fmt.Sprintf("%s answered with %.20q", wrong, reply))
			}
		})
	}
}

// foreignReply calls the operations of a driver. Those that succeed are right.
func foreignReply(t *testing.T, f *fake, d *driver, what string) {
	ctx, cancel := context.WithTimeout(t.Context(), test.Soon)
	defer cancel()
	stored := func(key string) string {
		b, err := os.ReadFile(filepath.Join(f.root, key))
		if err != nil {
			return "missing"
		}
		return string(b)
	}
	page, err := d.List(ctx, storagedrivers.ListOptions{Limit: 10})
	if err == nil && (len(page.Objects) != 1 || page.Objects[0].Size != 7) {
		t.Errorf("%s: listed %v", what, page.Objects)
	}
	info, err := d.Stat(ctx, "key")
	test.IsNot(t, err, fs.ErrNotExist, what, "stat")
	if err == nil && info.Size != 7 {
		t.Errorf("%s: stat %+v", what, info)
	}
	content, err := read(t, d, "key")
	test.IsNot(t, err, fs.ErrNotExist, what, "open")
	if err == nil && content != "content" {
		t.Errorf("%s: read %q", what, content)
	}
	if err := put(t, d, "folder/other", "other", overwrite); err == nil && stored("folder/other") != "other" {
		t.Errorf("%s: stored %s", what, stored("folder/other"))
	}
	if err := d.Check(ctx); err == nil && strings.HasPrefix(what, "CWD") {
		t.Errorf("%s: the check succeeded", what)
	}
	if err := d.Delete(ctx, "key", storagedrivers.DeleteOptions{}); err == nil && stored("key") != "missing" {
		t.Errorf("%s: key was not deleted", what)
	}
	test.Is(t, ctx.Err(), nil, what)
}
