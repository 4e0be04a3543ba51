package features_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

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
// Grafana.
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
	for _, name := range names {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestDocsMetrics: the documentation lists every metric.
func TestDocsMetrics(t *testing.T) {
	site.Start(t, site.Account+site.LocalDefault+cached+onDefault, "media")
	_, section, _ := strings.Cut(pages.Text(t, "metrics.md"), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range registered(t) {
		if short := strings.TrimPrefix(name, "caddy_media_"); !strings.Contains(section, "`"+short+"`") {
			t.Errorf("the documentation has no %s", name)
		}
	}
}
