package docs_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

const checksPage = "checks.md"

// eicar is the test file of scanners. It is harmless, and written so that no scanner finds it here.
var eicar = `X5O!P%@AP[4\PZX54(P^)7CC)7}$` + `EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*`

// TestDocsClamd: what ClamAV finds, also in an archive, is not stored, and neither is anything
// while it does not answer.
func TestDocsClamd(t *testing.T) {
	program := servers.Program(t, "clamd")
	folder, address := servers.Folder(t), servers.FreeAddress(t)
	host, port, _ := strings.Cut(address, ":")
	for name, text := range map[string]string{
		"eicar.ndb": fmt.Sprintf("Test.EICAR:0:*:%x\n", eicar[:68]),
		"clamd.conf": fmt.Sprintf("TCPSocket %s\nTCPAddr %s\nDatabaseDirectory %s\nForeground yes\nStreamMaxLength 1M\nLogFile %s/log\n",
			port, host, folder, folder),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	daemon := servers.Start(t, address, func() *exec.Cmd { return exec.Command(program, "-c", filepath.Join(folder, "clamd.conf")) })
	c := site.NewChild(t)
	config := pages.Media(t, pages.Example(t, checksPage, "caddyfile", "{"))
	config, _, _ = strings.Cut(config, "\t\t\tcheck http")
	c.Start("tokens memory\nstorage default {\n\tdriver local $ROOT\n}\n" + site.Account + strings.ReplaceAll(config, "unix//run/clamav/clamd.ctl", address) + "}\n")
	client := c.HTTP1()
	token := client.MustLogin(t)
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	in, err := w.Create("a/eicar.com")
	if err == nil {
		_, err = in.Write([]byte(eicar))
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	client.MustPut(t, token, "documents", "good.txt", []byte("what it is"))
	for name, tt := range map[string]struct {
		content []byte
		status  int
		message string
	}{
		"a.txt":     {[]byte(eicar), 415, "the file contains malware"},
		"a.zip":     {archive.Bytes(), 415, "the file contains malware"},
		"large.txt": {bytes.Repeat([]byte("x"), 2<<20), 413, "larger than what the check clamd takes"},
	} {
		answer, _ := client.Put(t, token, "documents", name, tt.content)
		if answer.Status != tt.status || !strings.Contains(fmt.Sprint(answer.Errors), tt.message) {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	probed := c.Media("probe", "--config", filepath.Join(c.Home, "Caddyfile"), "--adapter", "caddyfile")
	if probed.Code != 1 || strings.Count(probed.Out, "  ok") != 3+9 || !strings.Contains(probed.Err, "raise its limit (StreamMaxLength of clamd)") {
		t.Errorf("probe: %+v", probed)
	}
	daemon.Stop()
	answer, _ := client.Put(t, token, "documents", "late.txt", []byte("what it is"))
	if answer.Status != 503 || c.Metric("check_up", `check="clamd"`) != 0 {
		t.Errorf("without clamd: %+v", answer)
	}
	health := c.Media("health", "--address", c.Admin)
	if health.Code != 1 || !strings.Contains(health.Err, "file/documents clamd: The host refused the connection") {
		t.Errorf("health without clamd: %+v", health)
	}
	daemon.Start()
	client.MustPut(t, token, "documents", "late.txt", []byte("what it is"))
	if files, err := filepath.Glob(filepath.Join(c.Root, "file/documents/*")); err != nil || len(files) != 2 {
		t.Errorf("stored are %q, %v", files, err)
	}
}

// TestDocsJudge: the program of the page decides, and says why.
func TestDocsJudge(t *testing.T) {
	python := servers.Program(t, "python3")
	address := servers.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	script := filepath.Join(t.TempDir(), "judge.py")
	text := strings.Replace(pages.Example(t, checksPage, "python", "from http"), "9000", port, 1)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	servers.Start(t, address, func() *exec.Cmd { return exec.Command(python, script) })
	c := site.NewChild(t)
	config := pages.Media(t, pages.Example(t, checksPage, "caddyfile", "{"))
	before, after, _ := strings.Cut(config, "\t\t\tcheck clamd unix//run/clamav/clamd.ctl\n")
	t.Setenv("JUDGE_KEY", "secret")
	c.Start("tokens memory\n" + site.Account + strings.ReplaceAll(before+after, "127.0.0.1:9000", address))
	client := c.HTTP1()
	token := client.MustLogin(t)
	client.MustPut(t, token, "documents", "good.pdf", []byte("%PDF-1.7\n%%EOF"))
	answer, _ := client.Put(t, token, "documents", "bad.pdf", []byte("%PDF-1.7\n/JavaScript\n%%EOF"))
	if answer.Status != 415 || !strings.Contains(fmt.Sprint(answer.Errors), "PDF files with scripts are not accepted") {
		t.Errorf("%+v", answer)
	}
}
