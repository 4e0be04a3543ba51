package features_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.yaml.in/yaml/v3"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

var fullName = regexp.MustCompile(`fqName: "(caddy_media_[a-z_]+)"`)

// registered returns the names of all metrics of the running app, including those that have not
// counted anything.
func registered(t *testing.T) []string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	running := caddy.ActiveContext()
	go func() {
		defer close(descriptions)
		running.GetMetricsRegistry().Describe(descriptions)
	}()
	var names []string
	for d := range descriptions {
		if found := fullName.FindStringSubmatch(d.String()); found != nil {
			names = append(names, found[1])
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // those with constant labels occur for each of them
	if len(names) == 0 {
		t.Fatal("no metrics are registered")
	}
	return names
}

// familyOf removes the suffix of a histogram from its name.
func familyOf(name string, names []string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && slices.Contains(names, base) {
			return base
		}
	}
	return name
}

// TestMetricsMove: under load each metric changes at the admin endpoint, and Prometheus' own linter
// finds no fault.
func TestMetricsMove(t *testing.T) {
	frail := site.TempFolder(t) + "/frail" // cannot be a storage as long as it is a file
	if err := os.WriteFile(frail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	judge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(200 + int(asked.Add(1)%2)*300) // every other time it has no answer
	}))
	t.Cleanup(judge.Close)
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Account + "health_interval 20ms\nlimits {\nimage_workers 1\nlogin_failures 1000000\n}\n" + site.AtRoot + "}\n" +
			replacing + "storage frail {\ndriver local " + frail + "\n}\n" +
			strings.Replace(onDefault, "webp\n", "webp\nrendition small {\nwidth 4\neager on\n}\ncheck http "+judge.URL+" {\nif_unavailable pass\n}\n", 1),
		Site: site.PanelBlock, Global: "admin " + servers.FreeAddress(t),
	})
	names, before := registered(t), scrape(t, p)
	// Sweeps set those of unfinished uploads and of the trash, twice a minute at most.
	still := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return strings.HasPrefix(name, "caddy_media_unfinished_") || strings.HasPrefix(name, "caddy_media_trash_")
	})
	defer func() {
		if len(still) > 0 {
			t.Errorf("these do not move: %q", still)
		}
	}()
	stop := underLoad(t, p)
	defer stop()
	repaired := false
	site.Eventually(t, "every metric has moved", func() bool {
		for series, value := range scrape(t, p) {
			name, _, _ := strings.Cut(series, "{")
			if was, known := before[series]; known && was != value {
				still = slices.DeleteFunc(still, func(one string) bool { return one == familyOf(name, names) })
			}
			before[series] = value
		}
		if !repaired && before[`caddy_media_storage_up{storage="frail"}`] == "0" {
			repaired = os.Remove(frail) == nil // once: the folder created then must stay
		}
		if t.Failed() {
			t.FailNow()
		}
		return len(still) == 0
	})
	running := caddy.ActiveContext()
	problems, err := testutil.GatherAndLint(running.GetMetricsRegistry())
	if err != nil || len(problems) > 0 {
		t.Errorf("the linter says %v %v", problems, err)
	}
}

// scrape returns the values of all series of the app at the admin endpoint.
func scrape(t *testing.T, p *site.Panel) map[string]string {
	t.Helper()
	r, err := site.AdminClient.Get("http://" + strings.Fields(p.Admin)[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "caddy_media_") {
			values[fields[0]] = fields[1] // no label here has a space
		}
	}
	return values
}

// underLoad runs all operations on items repeatedly until stop is called.
func underLoad(t *testing.T, p *site.Panel) (stop func()) {
	t.Helper()
	var stopped atomic.Bool
	signed, photo := site.Merged(p.Credentials(t), site.FormType), sample.EncodeJPEG(t, sample.Photo(1200, 900), 90)
	ask := func(method, path string, header http.Header, body string) (location string) {
		r, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		maps.Copy(r.Header, header)
		if strings.HasPrefix(path, "/media-admin") {
			r.SetBasicAuth(p.User, site.Password)
		}
		answer, err := p.Client.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return ""
		}
		return answer.Header.Get("Location")
	}
	tus := site.Merged(p.Credentials(t), site.Headers("Tus-Resumable", "1.0.0", "Content-Type", "application/offset+octet-stream"))
	sendPhoto := func() { ask(http.MethodPost, "/api/upload/image", signed, site.Form(site.File("a.jpg", photo))) }
	works := []func(){
		sendPhoto, sendPhoto, sendPhoto,
		func() {
			ask(http.MethodPost, "/api/upload/file?alias=over", signed, site.Form(site.File("a.txt", "replaced")))
			ask(http.MethodPost, "/api/upload/file", signed, site.Form(site.File("b.txt", "deleted")))
			ask(http.MethodGet, "/static/file/content/b.txt", nil, "")
			ask(http.MethodDelete, "/media-admin/api/items/file/content/b.txt", nil, "")
			ask(http.MethodPost, "/api/upload/file", signed, site.Form(site.File("b.exe", "refused")))
			ask(http.MethodPost, "/api/auth/generateToken", site.Headers("Content-Type", "application/x-www-form-urlencoded"), "api_key=none&password=wrong")
			created := ask(http.MethodPost, "/api/upload/file/resumable",
				site.Merged(tus, site.Headers("Upload-Length", "2", "Upload-Metadata", "filename Yy50eHQ=")), "x")
			ask(http.MethodPatch, created, site.Merged(tus, site.Headers("Upload-Offset", "1")), "x")
			ask(http.MethodPost, "/api/auth/ticket", site.Headers("Content-Type", "application/x-www-form-urlencoded"), "kind=file")
		},
	}
	var working sync.WaitGroup
	for _, work := range works {
		working.Go(func() {
			for !stopped.Load() {
				work()
			}
		})
	}
	return func() {
		stopped.Store(true)
		working.Wait()
	}
}

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

type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct{ List []dashboardVariable }
	Panels        []dashboardPanel
}

type dashboardVariable struct{ Name, Type, Query any }

type dashboardPanel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ Type, UID string }
	Targets     []struct {
		RefID, Expr string
		Datasource  struct{ Type, UID string }
	}
}

// overlaps reports whether two panels overlap.
func (p dashboardPanel) overlaps(q dashboardPanel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

var metricName = regexp.MustCompile(`\bcaddy_media_[a-z_]+`)

// cached is a storage with a cache, on a host that does not answer.
const cached = "storage far {\ndriver ftp 127.0.0.1:1 {\nuser media\npassword secret\n}\ncache\n}\n"

// TestDashboard: the dashboard shows exactly the existing metrics, from a Prometheus selected in
// Grafana, and the documentation lists them.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../admin/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 39 || len(d.Templating.List) == 0 ||
		d.Templating.List[0].Type != "datasource" || d.Templating.List[0].Query != "prometheus" {
		t.Errorf("the head of the dashboard is %+v", d)
	}
	site.Start(t, site.Account+site.LocalDefault+cached+onDefault, "media")
	names, shown := registered(t), map[string]bool{}
	for i, p := range d.Panels {
		for _, q := range d.Panels[:i] {
			if p.ID == q.ID || p.overlaps(q) {
				t.Errorf("%q and %q share an id or overlap", p.Title, q.Title)
			}
		}
		if g := p.GridPos; p.Title == "" || p.ID == 0 || g.W == 0 || g.H == 0 || g.X+g.W > 24 {
			t.Errorf("panel %q has the id %d and the position %+v", p.Title, p.ID, g)
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("%q shows %d queries", p.Title, len(p.Targets))
		}
		for _, target := range p.Targets {
			if p.Datasource.UID != "${datasource}" || target.Datasource.UID != "${datasource}" {
				t.Errorf("%q is of another Prometheus than the chosen one", p.Title)
			}
			used := metricName.FindAllString(target.Expr, -1)
			if len(used) == 0 || strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") {
				t.Errorf("%q asks for %s", p.Title, target.Expr)
			}
			for _, name := range used {
				shown[familyOf(name, names)] = true
				if !slices.Contains(names, familyOf(name, names)) {
					t.Errorf("%q shows %s, which there is not", p.Title, name)
				}
			}
		}
	}
	_, section, _ := strings.Cut(pages.Text(t, "metrics.md"), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range names {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
		if short := strings.TrimPrefix(name, "caddy_media_"); !strings.Contains(section, "`"+short+"`") {
			t.Errorf("the documentation has no %s", name)
		}
	}
}

// alertRules is a file of rules for alerts of Prometheus.
type alertRules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

var labelValues = regexp.MustCompile(`[a-z]+=~?"([^"]+)"`)

// TestAlerts: the rules for alerts ask for existing metrics, and for values of labels that the
// documentation has.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../../../admin/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file alertRules
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%d groups, %v", len(file.Groups), err)
	}
	site.Start(t, site.Account+site.LocalDefault+cached+onDefault, "media")
	names, page := registered(t), pages.Text(t, "metrics.md")
	known := map[string]bool{}
	for _, rule := range file.Groups[0].Rules {
		if known[rule.Alert] || !strings.HasPrefix(rule.Alert, "Media") || rule.Annotations["summary"] == "" ||
			!slices.Contains([]string{"warning", "critical"}, rule.Labels["severity"]) {
			t.Errorf("the rule %+v", rule)
		}
		known[rule.Alert] = true
		used := metricName.FindAllString(rule.Expr, -1)
		if len(used) == 0 || strings.Count(rule.Expr, "(") != strings.Count(rule.Expr, ")") {
			t.Errorf("%s asks for %s", rule.Alert, rule.Expr)
		}
		for _, name := range used {
			if !slices.Contains(names, familyOf(name, names)) {
				t.Errorf("%s asks for %s, which there is not", rule.Alert, name)
			}
		}
		for _, match := range labelValues.FindAllStringSubmatch(rule.Expr, -1) {
			for value := range strings.SplitSeq(match[1], "|") {
				if !strings.Contains(page, "`"+value+"`") {
					t.Errorf("%s asks for %q, which the documentation does not have", rule.Alert, value)
				}
			}
		}
	}
}
