package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

const s3Page = "s3.md"

// s3Site is the site of the page about S3, and a folder in which its programs run.
type s3Site struct {
	address, folder string
	env             []string
}

// newS3Site starts the site as documented. Only its address, the folder of the storage and the secret differ.
func newS3Site(t *testing.T) *s3Site {
	t.Helper()
	const root, host, secret = "/srv/media", "s3.example.com {", "a secret of the test"
	config := pages.Example(t, s3Page, "caddyfile", host)
	_, sites, _ := strings.Cut(config, "\n"+host)
	s := &s3Site{address: "http://" + servers.FreeAddress(t), folder: t.TempDir()}
	c := site.NewChild(t, "SHOP_PASSWORD_HASH="+site.CheapHash, "SHOP_S3_SECRET="+secret)
	c.Sites = s.address + " {" + sites
	c.Start("tokens memory\n" + strings.ReplaceAll(pages.Media(t, config), root, c.Root))
	s.env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "AWS_") }),
		"HOME="+s.folder, "SHOP_S3_SECRET="+secret, "AWS_ACCESS_KEY_ID=shop", "AWS_SECRET_ACCESS_KEY="+secret, "AWS_DEFAULT_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "RESTIC_PASSWORD=for trying out")
	return s
}

// run runs commands in the folder of the site, and returns their output.
func (s *s3Site) run(t *testing.T, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), servers.Program(t, "sh"), "-e")
	cmd.Stdin = strings.NewReader(strings.NewReplacer("https://s3.example.com", s.address, "$HOST", strings.TrimPrefix(s.address, "http://")).Replace(commands))
	cmd.Dir, cmd.Env = s.folder, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return string(out)
}

// TestS3Programs: the programs of the page store, list, read and delete items, large ones in parts too.
func TestS3Programs(t *testing.T) {
	s := newS3Site(t)
	large := sample.Described(1, 20<<20)
	site.PutFile(t, filepath.Join(s.folder, "large.bin"), string(large))
	site.PutFile(t, filepath.Join(s.folder, "report.pdf"), "%PDF-1.7\nreport")
	for name, size := range map[string]int{"one.txt": 1, "ü b/two+.bin": 100_000, "deep/er/three.bin": 1 << 20} {
		site.PutFile(t, filepath.Join(s.folder, "folder", filepath.FromSlash(name)), string(sample.Described(uint64(size), size)))
	}
	tests := map[string]func(t *testing.T){
		"aws": func(t *testing.T) {
			if out := s.run(t, pages.Example(t, s3Page, "sh", "aws ")); !strings.Contains(out, "2026/report.pdf") {
				t.Errorf("listed: %s", out)
			}
			s.run(t, `alias s3="aws --endpoint-url https://s3.example.com s3"
				s3 cp large.bin s3://file-docs/aws/large.bin
				s3 cp s3://file-docs/aws/large.bin s3://file-docs/aws/copy.bin
				s3 mv s3://file-docs/aws/copy.bin s3://file-docs/aws/moved.bin
				s3 cp s3://file-docs/aws/moved.bin aws.bin
				s3 rm --recursive s3://file-docs/aws
				test -z "$(s3 ls --recursive s3://file-docs/aws)"`)
			s.wantFile(t, "aws.bin", large)
		},
		"rclone": func(t *testing.T) {
			config := strings.NewReplacer("https://s3.example.com", s.address, "the secret", "a secret of the test").Replace(pages.Example(t, s3Page, "ini", "type = s3"))
			site.PutFile(t, filepath.Join(s.folder, ".config", "rclone", "rclone.conf"), config)
			s.run(t, pages.Example(t, s3Page, "sh", "rclone sync"))
			s.run(t, `rclone check --download ./folder media:file-docs/folder
				rclone copyto --s3-upload-cutoff 5M --s3-chunk-size 5M large.bin media:file-docs/rclone/large.bin
				rclone rcat --s3-chunk-size 5M media:file-docs/rclone/rcat.bin < large.bin
				rclone moveto media:file-docs/rclone/rcat.bin media:file-docs/rclone/moved.bin
				rclone cat media:file-docs/rclone/large.bin > rclone.bin
				rclone cat media:file-docs/rclone/moved.bin | cmp - large.bin
				rclone purge media:file-docs/folder
				test -z "$(rclone lsf -R media:file-docs/folder)"`)
			s.wantFile(t, "rclone.bin", large)
		},
		"s3cmd": func(t *testing.T) {
			s.run(t, `alias s3="s3cmd --access_key=shop --secret_key=\"$SHOP_S3_SECRET\" --no-ssl --no-progress --host $HOST --host-bucket $HOST"
				s3 put large.bin s3://file-docs/s3cmd/large.bin
				s3 put report.pdf s3://file-docs/s3cmd/report.pdf
				s3 cp s3://file-docs/s3cmd/report.pdf s3://file-docs/s3cmd/copy.pdf
				s3 info s3://file-docs/s3cmd/copy.pdf
				s3 get s3://file-docs/s3cmd/large.bin s3cmd.bin
				s3 del -r --force s3://file-docs/s3cmd
				test -z "$(s3 ls -r s3://file-docs/s3cmd)"`)
			s.wantFile(t, "s3cmd.bin", large)
		},
		"restic": func(t *testing.T) {
			s.run(t, `alias restic="restic -r s3:https://s3.example.com/file-docs/backups"
				restic init
				restic backup folder large.bin
				restic backup folder large.bin
				restic forget --keep-last 1 --prune
				restic check --read-data
				restic restore latest --target restored
				diff -r folder restored/folder
				cp restored/large.bin restic.bin`)
			s.wantFile(t, "restic.bin", large)
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			servers.Program(t, name)
			test(t)
		})
	}
}

func (s *s3Site) wantFile(t *testing.T, name string, want []byte) {
	t.Helper()
	if got := site.ReadFile(t, filepath.Join(s.folder, name)); !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, and not those of the file", name, len(got))
	}
}
