// Package guest_test holds a driver that no other package knows.
package guest_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddymedia/media/caddymedia"
	"github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// word is the expanded secret of the configuration.
const word = "open sesame"

func TestMain(m *testing.M) {
	if err := os.Setenv("SHELF_WORD", word); err != nil {
		panic(err)
	}
	os.Exit(testcaddy.Run(m))
}

const config = `{
	admin off
	log {
		output discard
	}
	media {
		tokens memory
		storage default {
			driver shelf top
		}
		storage locked {
			driver shelf low {
				password {env.SHELF_WORD}
				locked on
			}
		}
		image_alias content {
			storage default
		}
		file_alias papers {
			storage locked
		}
	}
}
`

// adapt returns the JSON of a Caddyfile.
func adapt(t *testing.T, text string) []byte {
	t.Helper()
	adapted, _, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return adapted
}

func TestDescription(t *testing.T) {
	t.Parallel()
	drivertest.Describe(t, drivertest.Description{
		New:     drivertest.NewConfig[Config],
		Options: `{"label": "top"}`,
		Where:   "top",
		Same:    []string{`{"label": "top", "password": "x", "locked": true}`},
		Apart:   []string{`{"label": "low"}`},
		Refused: `{"label": "top", "locked": true}`,
	})
}

// TestOverlap: aliases on two storages of one shelf must not overlap.
func TestOverlap(t *testing.T) { // not parallel: Caddy has globals
	var parsed caddy.Config
	overlapping := strings.NewReplacer("shelf low", "shelf top", "storage locked\n", "storage locked\n\t\t\tprefix img\n").Replace(config)
	if err := json.Unmarshal(adapt(t, overlapping), &parsed); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&parsed); err == nil || !strings.Contains(err.Error(), "overlaps") {
		t.Errorf("error %v", err)
	}
}

// ask sends a request to the panel's API and decodes the answer.
func ask(t *testing.T, method, address, body string, into any) {
	t.Helper()
	w := httptest.NewRecorder()
	adminapi.New().ServeHTTP(w, httptest.NewRequest(method, address, strings.NewReader(body)).WithContext(t.Context()))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), word) {
		t.Fatalf("%s %s: status %d: %s", method, address, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}

type driverInPanel struct {
	Title, Icon, Help string
	Options           []struct {
		Name, Help               string
		Required, Secret, Common bool
	}
}

type report struct {
	OK    bool
	Steps []struct{ Name, Title, Message, Detail string }
}

// TestPanel: the panel shows the driver, its form and its storages, and tests them.
func TestPanel(t *testing.T) { // not parallel: Caddy has globals
	if err := caddy.Load(adapt(t, config), true); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	}()

	var kinds struct{ Drivers map[string]driverInPanel }
	ask(t, http.MethodGet, "/kinds", "", &kinds)
	shelf := kinds.Drivers["shelf"]
	if shelf.Title != "Shelf in memory" || shelf.Icon != "disk" || !strings.HasPrefix(shelf.Help, "Keeps objects in memory.") ||
		len(shelf.Options) != 3 || !shelf.Options[0].Required || !shelf.Options[1].Secret || !shelf.Options[2].Common {
		t.Errorf("form %+v", shelf)
	}

	var listed struct {
		Storages []struct {
			Name, Driver, Where string
			DriverTitle         string `json:"driver_title"`
			Settings            map[string]any
		}
	}
	ask(t, http.MethodGet, "/storages", "", &listed)
	if len(listed.Storages) != 2 {
		t.Fatalf("storages %+v", listed)
	}
	for i, where := range []string{"top", "low"} {
		if s := listed.Storages[i]; s.Driver != "shelf" || s.DriverTitle != "Shelf in memory" || s.Where != where || s.Settings["label"] != where {
			t.Errorf("storage %+v", s)
		}
	}

	var good, bad, unsaved report
	ask(t, http.MethodPost, "/storages/default/probe", "", &good)
	if !good.OK || len(good.Steps) != 9 || good.Steps[0].Title != "Connect, log in and find the shelf" {
		t.Errorf("probe %+v", good)
	}
	ask(t, http.MethodPost, "/storages/locked/probe", "", &bad)
	ask(t, http.MethodPost, "/probe", `{"driver": {"name": "shelf", "label": "new", "password": "{env.SHELF_WORD}", "locked": true}}`, &unsaved)
	for _, r := range []report{bad, unsaved} {
		if r.OK || len(r.Steps) != 1 || r.Steps[0].Message != string(locked) || r.Steps[0].Detail == "" {
			t.Errorf("probe %+v", r)
		}
	}
	var lost report
	ask(t, http.MethodPost, "/probe", `{"driver": {"name": "shelf", "label": "lost"}}`, &lost)
	if len(lost.Steps) != 1 || !strings.HasPrefix(lost.Steps[0].Message, "The shelf does not exist") {
		t.Errorf("probe %+v", lost)
	}
	checkMetrics(t)
}

// checkMetrics checks that the operations of the probes are measured.
func checkMetrics(t *testing.T) {
	t.Helper()
	running := caddy.ActiveContext()
	families, err := running.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "caddy_media_storage_operation_seconds" && label.GetName() == "storage" {
					measured[label.GetValue()] = true
				}
			}
		}
	}
	if !measured["default"] || !measured["locked"] {
		t.Errorf("operations of %v are measured", measured)
	}
}

// TestOtherFiles: no file outside this package names the driver.
func TestOtherFiles(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`(?i)\bshelf\b`)
	repository := os.DirFS("../../..")
	read := 0
	err := fs.WalkDir(repository, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "caddymedia/integration/guest" || len(path) > 1 && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !slices.Contains([]string{".go", ".js", ".html", ".css", ".json", ".md"}, filepath.Ext(path)):
			return nil
		}
		read++
		content, err := fs.ReadFile(repository, path)
		if named.Match(content) {
			t.Errorf("%s names the driver", path)
		}
		return err
	})
	if err != nil || read < 100 {
		t.Errorf("%d files were read, error %v", read, err)
	}
}

// TestCommand: `caddy media probe` names the driver.
func TestCommand(t *testing.T) { // not parallel: Caddy has globals
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, failures bytes.Buffer
	root := &cobra.Command{Use: "caddy"}
	media := &cobra.Command{Use: "media"}
	caddycmd.Commands()["media"].CobraFunc(media)
	root.AddCommand(media)
	root.SetOut(&out)
	root.SetErr(&failures)
	root.SetArgs([]string{"media", "probe", "--config", file})
	if err := root.ExecuteContext(t.Context()); err == nil {
		t.Error("a locked shelf is no failure")
	}
	for _, want := range []string{"default (shelf) can be used\n", "locked (shelf) CANNOT be used"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, &out)
		}
	}
	if told := failures.String(); !strings.Contains(told, "locked: connect, log in") || strings.Contains(told, word) {
		t.Errorf("failures %s", told)
	}
}
