package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

const (
	s3Page   = "s3.md"
	s3Secret = "a secret of the test"
)

// s3Site is the site of the page about S3, and a folder in which its programs run.
type s3Site struct {
	scheme, address, folder string
	env                     []string
	system                  bool // whether the programs are those of the system
}

// newS3Site starts the site as documented. Only its address, the folder of the storage and the
// secret differ.
func newS3Site(t *testing.T, scheme string) *s3Site {
	t.Helper()
	const root, host = "/srv/media", "s3.example.com {"
	config := pages.Example(t, s3Page, "caddyfile", host)
	_, sites, _ := strings.Cut(config, "\n"+host)
	s := &s3Site{scheme: scheme, address: scheme + "://" + servers.FreeAddress(t), folder: t.TempDir()}
	c := site.NewTLSChild(t)
	c.Env = append(c.Env, "SHOP_PASSWORD_HASH="+site.CheapHash, "SHOP_S3_SECRET="+s3Secret)
	c.Sites = s.address + " {" + sites
	c.Start("tokens memory\n" + strings.ReplaceAll(pages.Media(t, config), root, c.Root))
	authority := filepath.Join(c.Home, "data", "caddy", "pki", "authorities", "local", "root.crt")
	s.env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "AWS_") }),
		"HOME="+s.folder, "SHOP_S3_SECRET="+s3Secret, "AWS_ACCESS_KEY_ID=shop", "AWS_SECRET_ACCESS_KEY="+s3Secret, "AWS_DEFAULT_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "RESTIC_PASSWORD=for trying out",
		"AWS_CA_BUNDLE="+authority, "SSL_CERT_FILE="+authority, "CURL_CA_BUNDLE="+authority, "NODE_EXTRA_CA_CERTS="+authority)
	return s
}

// with returns the site with other variables of the environment.
func (s *s3Site) with(variables ...string) *s3Site {
	other := *s
	other.env = append(slices.Clone(s.env), variables...)
	return &other
}

// run runs commands in the folder of the site, and returns their output.
func (s *s3Site) run(t *testing.T, commands string) string {
	t.Helper()
	ssl := map[string]string{"http": "--no-ssl", "https": "--ssl"}[s.scheme]
	_, host, _ := strings.Cut(s.address, "://")
	cmd := exec.CommandContext(t.Context(), servers.Program(t, "sh"), "-e")
	cmd.Stdin = strings.NewReader(strings.NewReplacer("https://s3.example.com", s.address, "s3.example.com", host, "$SSL", ssl).Replace(commands))
	cmd.Dir, cmd.Env = s.folder, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return string(out)
}

// script returns the path of a program of this folder.
func script(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(pages.Root(t), "caddymedia", "integration", "docs", name)
}

// s3Programs run the programs of the page, and others that come from Debian or npm: they store,
// list, copy, read and delete items, large ones in parts too.
var s3Programs = map[string]func(t *testing.T, s *s3Site){
	"aws": func(t *testing.T, s *s3Site) {
		if out := s.run(t, pages.Example(t, s3Page, "sh", "aws ")); !strings.Contains(out, "2026/report.pdf") {
			t.Errorf("listed: %s", out)
		}
		s.run(t, `alias s3="aws --endpoint-url https://s3.example.com s3"
			s3 cp large.bin s3://file-docs/aws/large.bin
			s3 cp s3://file-docs/aws/large.bin s3://file-docs/aws/copy.bin
			s3 mv s3://file-docs/aws/copy.bin s3://file-docs/aws/moved.bin
			s3 cp s3://file-docs/aws/moved.bin aws.bin
			cmp aws.bin large.bin
			s3 sync folder s3://file-docs/aws/folder
			test -z "$(s3 sync folder s3://file-docs/aws/folder)"
			s3 rm --recursive s3://file-docs/aws
			test -z "$(s3 ls --recursive s3://file-docs/aws)"`)
	},
	"curl": func(t *testing.T, s *s3Site) {
		s.run(t, pages.Example(t, s3Page, "sh", "curl ")+`
			cmp copy.pdf report.pdf`)
	},
	"rclone": func(t *testing.T, s *s3Site) {
		s = s.with("AWS_CA_BUNDLE=") // it cannot use it
		s.example(t, ".config/rclone/rclone.conf", "ini", "type = s3")
		s.run(t, pages.Example(t, s3Page, "sh", "rclone sync"))
		s.run(t, `rclone check --download ./folder media:file-docs/folder
			rclone copyto --s3-upload-cutoff 5M --s3-chunk-size 5M large.bin media:file-docs/rclone/large.bin
			rclone rcat --s3-chunk-size 5M media:file-docs/rclone/rcat.bin < large.bin
			rclone moveto media:file-docs/rclone/rcat.bin media:file-docs/rclone/moved.bin
			rclone cat media:file-docs/rclone/large.bin | cmp - large.bin
			rclone cat media:file-docs/rclone/moved.bin | cmp - large.bin
			rclone purge media:file-docs/folder
			test -z "$(rclone lsf -R media:file-docs/folder)"`)
	},
	"s3cmd": func(t *testing.T, s *s3Site) {
		s.run(t, `alias s3="s3cmd --access_key=shop --secret_key=\"$SHOP_S3_SECRET\" $SSL --no-progress --host s3.example.com --host-bucket s3.example.com"
			s3 put large.bin s3://file-docs/s3cmd/large.bin
			s3 put report.pdf s3://file-docs/s3cmd/report.pdf
			s3 cp s3://file-docs/s3cmd/report.pdf s3://file-docs/s3cmd/copy.pdf
			s3 info s3://file-docs/s3cmd/copy.pdf
			s3 get s3://file-docs/s3cmd/large.bin s3cmd.bin
			cmp s3cmd.bin large.bin
			s3 sync folder s3://file-docs/s3cmd/
			s3 del -r --force s3://file-docs/s3cmd
			test -z "$(s3 ls -r s3://file-docs/s3cmd)"`)
	},
	"restic": func(t *testing.T, s *s3Site) {
		for i := range 2000 {
			site.PutFile(t, filepath.Join(s.folder, "many", strconv.Itoa(i%40), strconv.Itoa(i)), string(sample.Described(uint64(i), i)))
		}
		s.run(t, `alias restic="restic -r s3:https://s3.example.com/file-docs/backups"
			restic init
			restic backup folder large.bin
			restic backup many large.bin
			restic forget --keep-last 1 --group-by host --prune
			restic check --read-data
			restic restore latest --target restored
			diff -r many restored/many
			cmp large.bin restored/large.bin`)
	},
	"python3": func(t *testing.T, s *s3Site) {
		t.Run("boto3", func(t *testing.T) {
			s.needsModule(t, "boto3")
			s.run(t, "python3 "+script(t, "s3boto.py")+" https://s3.example.com")
		})
		t.Run("Django", func(t *testing.T) {
			s.needsModule(t, "storages")
			s.example(t, "settings.py", "python", "AWS_S3_ENDPOINT_URL")
			s.run(t, "python3 "+script(t, "s3django.py")+" settings.py")
		})
	},
	"node": func(t *testing.T, s *s3Site) {
		folder := os.Getenv("MEDIA_TEST_SDKS")
		if folder == "" {
			site.Skip(t, "MEDIA_TEST_SDKS is not set")
		}
		for _, sdk := range []string{"v3", "v3.400", "v2"} {
			t.Run(sdk, func(t *testing.T) {
				s.run(t, "node --no-warnings "+script(t, "s3sdk.mjs")+" "+filepath.Join(folder, sdk)+" https://s3.example.com")
			})
		}
		t.Run("cms", func(t *testing.T) {
			s.example(t, "plugins.js", "js", "provider: 'aws-s3'")
			s.run(t, "node --no-warnings "+script(t, "s3cms.mjs")+" "+filepath.Join(folder, "cms")+" https://s3.example.com plugins.js")
		})
	},
}

// needsModule skips a test without a module of Python. The first Python in PATH need not have any.
func (s *s3Site) needsModule(t *testing.T, module string) {
	t.Helper()
	if out := s.run(t, "python3 -c 'import "+module+"' 2>&1 || true"); out != "" {
		if s.system {
			site.Skip(t, "the Python of the system has no %s: %s", module, out)
		}
		t.Skip(out)
	}
}

// example writes an example of the page into the folder, with the address and the secret of the
// site.
func (s *s3Site) example(t *testing.T, name, language, text string) {
	t.Helper()
	own := strings.NewReplacer("https://s3.example.com", s.address, "the secret", s3Secret)
	site.PutFile(t, filepath.Join(s.folder, filepath.FromSlash(name)), own.Replace(pages.Example(t, s3Page, language, text)))
}

// TestS3Programs: over HTTP, and over TLS, where some send their bodies in another form. Those in
// Python are also the older ones of the system.
func TestS3Programs(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			s := newS3Site(t, scheme)
			site.PutFile(t, filepath.Join(s.folder, "large.bin"), string(sample.Described(1, 20<<20)))
			site.PutFile(t, filepath.Join(s.folder, "report.pdf"), "%PDF-1.7\nreport")
			for name, size := range map[string]int{"empty.txt": 0, "one.txt": 1, "ü b/two+.bin": 100_000, "deep/er/three.bin": 1 << 20} {
				site.PutFile(t, filepath.Join(s.folder, "folder", filepath.FromSlash(name)), string(sample.Described(uint64(size), size)))
			}
			for name, test := range s3Programs {
				t.Run(name, func(t *testing.T) {
					const system = "/usr/bin"
					path := servers.Program(t, name)
					s.system = filepath.Dir(path) == system
					test(t, s)
					if _, err := os.Stat(filepath.Join(system, name)); err == nil && !s.system && (name == "aws" || name == "python3") {
						older := s.with("PATH=" + system + ":" + os.Getenv("PATH"))
						older.system = true
						t.Run("of the system", func(t *testing.T) { test(t, older) })
					}
				})
			}
		})
	}
}
