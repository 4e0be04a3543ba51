package features_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestObserveAfterReload: an upload that outlives its configuration is counted in the metrics of
// the next one, and is in its audit log.
func TestObserveAfterReload(t *testing.T) {
	folder, admin := site.TempFolder(t), "admin "+servers.FreeAddress(t)
	with := func(file string) site.Config {
		return site.Config{
			Media: site.Basic, Site: site.PanelBlock,
			Global: admin + "\nlog audit {\noutput file " + filepath.Join(folder, file) + "\nformat json\ninclude media.audit\n}",
		}
	}
	p := site.StartPanelConfig(t, with("before.log"))
	const underWay, counted = `caddy_media_uploads_in_progress{kind="file"}`, `caddy_media_stored_items_total{alias="content",kind="file"}`
	begun, rest, _ := strings.Cut(site.Form(site.File("a.txt", "12 and 34")), " and ")
	body, write := io.Pipe()
	request := p.Request(t, http.MethodPost, "/api/upload/file", site.Merged(p.Credentials(t), site.FormType), body)
	answers := make(chan *site.Reply, 1)
	go func() {
		defer close(answers)
		answers <- p.Send(t, p.Client, request)
	}()
	if _, err := io.WriteString(write, begun); err != nil {
		t.Fatal(err)
	}
	site.Eventually(t, "the upload is under way", func() bool { return scrape(t, p)[underWay] == "1" })

	p.Load(t, with("after.log"))
	if now := scrape(t, p); now[underWay] != "1" || now[counted] != "" {
		t.Errorf("after the reload %q are under way and %q counted", now[underWay], now[counted])
	}
	if _, err := io.WriteString(write, " and "+rest); err != nil {
		t.Fatal(err)
	}
	write.Close()
	one := (<-answers).One(t)
	if now := scrape(t, p); now[underWay] != "0" || now[counted] != "1" {
		t.Errorf("in the end %q are under way and %q counted", now[underWay], now[counted])
	}
	if lines := logLines(t, filepath.Join(folder, "after.log"), "media.audit", 1); lines[0]["filename"] != one.Filename {
		t.Errorf("the audit log has %v", lines)
	}
}
