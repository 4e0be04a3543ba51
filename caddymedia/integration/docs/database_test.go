package docs_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestDocsDatabase runs the commands of the page about a restore with a database, with PostgreSQL.
// Only the folders and the time differ. Each row has the bytes that its item had at that time.
func TestDocsDatabase(t *testing.T) {
	const page, then = "restore-database.md", "2026-11-29T14:30:00+00:00"
	psql := postgres(t)
	c := site.NewChild(t)
	c.Start("tokens memory\ntrash 14d\n" + strings.TrimSpace(site.Account) + ` {
		may upload replace
	}
	storage default {
		driver local $ROOT
		overwrite_strategy overwrite
	}
	image_alias content
`)
	client := c.HTTP1()
	token := client.MustLogin(t)
	width := 40
	upload := func(name string) string { // each time of another width
		t.Helper()
		width++
		img := sample.JPEG(t, width, 30)
		if answer := client.UploadImage(t, token, "content", name, img); len(answer.Result) != 1 || answer.Result[0].Filename != name {
			t.Fatalf("%s: %v", name, answer)
		}
		return img
	}
	want := map[string]string{}
	add := func(name string) {
		t.Helper()
		want[name] = upload(name)
		psql.run("psql site -c \"insert into articles values ('" + name + "')\"")
	}
	block := func(begin string) string { return pages.Example(t, page, "sh", begin) }

	psql.run("psql -c 'create database site' && psql site -c 'create table articles (image text)'")
	psql.run(block("mkdir -p"))
	psql.run("pg_ctl restart -l log")
	add("before-the-backup.jpg")
	psql.run(block("pg_basebackup"))
	add("deleted.jpg")
	add("replaced.jpg")
	open := upload("open.jpg")
	psql.run(`psql site -c "begin; insert into articles values ('open.jpg'); prepare transaction 'open'"`)
	time.Sleep(100 * time.Millisecond)
	psql.names[then] = time.Now().Format("2006-01-02T15:04:05.000-07:00")
	time.Sleep(100 * time.Millisecond)

	for _, name := range []string{"deleted.jpg", "before-the-backup.jpg"} {
		if status, body := c.Ask(http.MethodDelete, "/media/items/img/content/"+name, ""); status != http.StatusOK {
			t.Fatalf("deleting %s: %d, %s", name, status, body)
		}
	}
	upload("replaced.jpg")
	upload("later.jpg")
	psql.run(`psql site -c "commit prepared 'open'" -c "delete from articles" -c "insert into articles values ('later.jpg')"`)

	psql.run("pg_ctl stop")
	psql.run(block("cd "))
	psql.run("pg_ctl start -l log")
	pause, list, _ := strings.Cut(block("psql -XAt"), "\n")
	site.Eventually(t, "PostgreSQL pauses", func() bool { return psql.run(pause) == "paused\n" })
	psql.run(list)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, c.Home, "set -e\ncaddy() { "+site.RunCaddy+"=1 "+program+` "$@" --address `+c.Admin+"; }\n"+psql.here(block("caddy media")))
	for _, totals := range []string{"restored  2 items", "replaced  1 items", "removed   1 items", "doubtful  0 items", "failed    0 items"} {
		if strings.Count(out, totals) != 2 || strings.Contains(out, "missing") {
			t.Errorf("%s are not twice in\n%s", totals, out)
		}
	}
	psql.run(block("psql -c \"select"))

	got := map[string]string{}
	for name := range strings.Lines(psql.run(`psql -XAt site -c "select image from articles"`)) {
		name = strings.TrimSpace(name)
		got[name] = string(site.ReadFile(t, filepath.Join(c.Root, "img/content", name)))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d rows do not have their items:\n%s", len(got), out)
	}
	if string(site.ReadFile(t, filepath.Join(c.Root, "img/content/open.jpg"))) != open {
		t.Error("the item of the open transaction is another one")
	}
	site.Eventually(t, "the database is writable", func() bool {
		return strings.Contains(psql.run("psql -XAt -c 'select pg_is_in_recovery()'"), "f")
	})
	psql.run(`psql site -c "insert into articles values ('new.jpg')"`)
}

// database is a PostgreSQL that keeps what the page has in /srv and /var/lib in a folder of its
// own.
type database struct {
	t      *testing.T
	folder string
	as     []string // begins a command of its user
	names  map[string]string
}

// postgres starts a PostgreSQL, which only its socket reaches. It refuses to run as root.
func postgres(t *testing.T) *database {
	t.Helper()
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian has them in no PATH
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", strings.Join(append(installed, os.Getenv("PATH")), string(os.PathListSeparator)))
	servers.Program(t, "pg_ctl")
	d := &database{t: t, folder: servers.Folder(t)}
	if os.Geteuid() == 0 {
		d.as = []string{servers.Program(t, "runuser"), "-u", "postgres", "--"}
	}
	if err := os.Chmod(d.folder, 0o777); err != nil {
		t.Fatal(err)
	}
	d.names = map[string]string{
		"/srv/": d.folder + "/srv/", "/var/lib/postgresql/": d.folder + "/lib/", "/tmp/names": d.folder + "/names",
	}
	for name, value := range map[string]string{
		"PGDATA": d.here("/var/lib/postgresql/15/main"), "PGHOST": d.folder, "PGUSER": "postgres", "PGDATABASE": "postgres",
	} {
		t.Setenv(name, value)
	}
	d.run("mkdir -p " + d.here("/var/lib/postgresql/15") + ` && initdb -A trust --no-sync
		echo "listen_addresses = ''" >>"$PGDATA/postgresql.conf"
		echo "unix_socket_directories = '$PGHOST'" >>"$PGDATA/postgresql.conf"
		echo "max_prepared_transactions = 1" >>"$PGDATA/postgresql.conf"
		pg_ctl start -l log`)
	t.Cleanup(func() { d.run("pg_ctl stop -m immediate") })
	return d
}

// here returns commands of the page with the names of this database.
func (d *database) here(commands string) string {
	for from, to := range d.names {
		commands = strings.ReplaceAll(commands, from, to)
	}
	return commands
}

// run runs commands of the user of the database, and returns their output.
func (d *database) run(commands string) string {
	d.t.Helper()
	args := append(slices.Clip(d.as), servers.Program(d.t, "sh"), "-ec", d.here(commands))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = d.folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(d.folder, "log"))
		d.t.Fatalf("%v in\n%s\n%s\n%s", err, commands, out, log)
	}
	return string(out)
}
