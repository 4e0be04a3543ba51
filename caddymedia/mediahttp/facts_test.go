package mediahttp_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// withFacts is a site whose image aliases say nothing (plain), sizes (sized) or a ThumbHash too
// (hashed).
func withFacts(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Accounts[someKey].May = []string{"upload", "list", "move"}
		for name, facts := range map[string]*media.Facts{"plain": nil, "sized": {}, "hashed": {With: "thumbhash"}} {
			c.ImageAliases[name] = &media.ImageAlias{AliasOptions: on("main"), Renditions: testservice.Sizes, Facts: facts}
		}
	})
}

// factsIn returns what the elements of an answer say of their images, without the fields of all
// answers.
func factsIn(t *testing.T, answer string) (facts []map[string]any) {
	t.Helper()
	var decoded struct{ Result []map[string]any }
	if err := json.Unmarshal([]byte(answer), &decoded); err != nil {
		t.Fatal(err, answer)
	}
	for _, element := range decoded.Result {
		for _, name := range []string{"full_path", "filename", "webp", "renditions", "size", "modified", "content_type", "etag"} {
			delete(element, name)
		}
		facts = append(facts, element)
	}
	return facts
}

// wantFacts are the facts of an image of 60 x 30 pixels. The square thumbnail is no choice of a
// page.
func wantFacts(alias, filename string) map[string]any {
	base := origin + "/static/img/" + alias
	pixels := func(width, height float64) map[string]any { return map[string]any{"width": width, "height": height} }
	return map[string]any{
		"width": 60.0, "height": 30.0,
		"srcset": base + "@modern/" + filename + " 30w, " + base + "/" + filename + " 60w",
		"sizes":  map[string]any{"thumb": pixels(20, 20), "wide": pixels(30, 15), "modern": pixels(30, 15)},
	}
}

// TestFacts: each answer about an image has its facts, as the alias wants them.
func TestFacts(t *testing.T) {
	t.Parallel()
	picture := pngOf(60, 30)
	ways := map[string]func(*testing.T, *site, string) string{
		"form": func(t *testing.T, s *site, alias string) string {
			t.Helper()
			body := form(field("alias", alias), field("sub_folder", "/"), file("a.png", picture))
			return httpCase{Target: imagePath, Header: multipart + bearer, Body: body, Status: 200}.Check(t, s).Body
		},
		"PUT": func(t *testing.T, s *site, alias string) string {
			t.Helper()
			return s.Do(t, http.MethodPut, imagePath+"/"+alias+"/a.png", bearer, picture).Want(t, 201, "").Body
		},
		"resumable": func(t *testing.T, s *site, alias string) string {
			t.Helper()
			header := "Upload-Length: " + strconv.Itoa(len(picture)) + "\n" + tusBody + metadata("filename", "a.png", "alias", alias, "sub_folder", "/")
			address := s.TusSend(t, http.MethodPost, imagePath+"/resumable", header, picture).Want(t, 201, "").Header.Get(location)
			return s.Do(t, http.MethodGet, address, bearer, "").Want(t, 200, "").Body
		},
		"item": func(t *testing.T, s *site, alias string) string {
			t.Helper()
			s.Put(t, "img/"+alias+"/a.png", picture)
			return s.Do(t, http.MethodGet, itemsPath+"image/"+alias+"/a.png", bearer, "").Want(t, 200, "").Body
		},
		"list": func(t *testing.T, s *site, alias string) string {
			t.Helper()
			s.Put(t, "img/"+alias+"/a.png", picture)
			return s.Do(t, http.MethodGet, itemsPath+"image/"+alias+"?facts=1", bearer, "").Want(t, 200, "").Body
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withFacts(t)
			for _, alias := range []string{"plain", "sized", "hashed"} {
				got := factsIn(t, way(t, s, alias))
				if len(got) != 1 {
					t.Fatalf("%v", got)
				}
				want := map[string]any{}
				if alias != "plain" {
					filename, _, _ := strings.Cut(got[0]["srcset"].(string)[len(origin+"/static/img/"+alias+"@modern/"):], " ")
					want = wantFacts(alias, filename)
				}
				hash, _ := got[0]["thumbhash"].(string)
				if delete(got[0], "thumbhash"); (hash != "") != (alias == "hashed" && name != "list") {
					t.Errorf("%s: hash %q", alias, hash)
				}
				if !reflect.DeepEqual(got[0], want) {
					t.Errorf("%s: %v, want %v", alias, got[0], want)
				}
			}
		})
	}
}

// TestFactsOfOthers: a moved item, a list without facts=1 and files have none, and an image that
// cannot be read has none and does not spoil a list.
func TestFactsOfOthers(t *testing.T) {
	t.Parallel()
	s := withFacts(t)
	s.Put(t, "img/sized/a.svg", `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 30"/>`)
	s.Put(t, "img/sized/b.png", "no picture")
	s.Put(t, "img/sized/c.png", pngOf(60, 30))
	s.Put(t, "file/one/a.txt", "text")
	list := itemsPath + "image/sized"
	get := func(target string) []map[string]any {
		t.Helper()
		return factsIn(t, s.Do(t, http.MethodGet, target, bearer, "").Want(t, 200, "").Body)
	}
	svg := map[string]any{"width": 40.0, "height": 30.0, "srcset": origin + "/static/img/sized/a.svg"}
	if got := get(list + "?facts=1&limit=50"); !reflect.DeepEqual(got, []map[string]any{svg, {}, wantFacts("sized", "c.png")}) {
		t.Errorf("list: %v", got)
	}
	if got := get(list + "/b.png"); !reflect.DeepEqual(got, []map[string]any{{}}) {
		t.Errorf("damaged: %v", got)
	}
	for target, n := range map[string]int{list: 3, list + "?facts=0&limit=200": 3, itemsPath + "file/one?facts=1": 1} {
		for _, facts := range get(target) {
			if len(facts) > 0 {
				t.Errorf("%s: %v", target, facts)
			}
			n--
		}
		if n != 0 {
			t.Errorf("%s: %d items are missing", target, n)
		}
	}
	moved := s.Do(t, http.MethodPost, list+"/c.png", bearer+urlencoded, "to=d.png").Want(t, 200, "").Body
	if got := factsIn(t, moved); !reflect.DeepEqual(got, []map[string]any{{}}) {
		t.Errorf("moved: %v", got)
	}
	for query, has := range map[string]string{
		"facts=2": "facts is 1 or 0", "facts=1&facts=1": "sent twice", "facts=1&limit=51": "from 1 to 50 with facts=1", "limit=201": "from 1 to 200",
	} {
		httpCase{Target: list + "?" + query, Header: bearer, Status: 400, Has: has}.Check(t, s)
	}
}

// TestFactsWithoutStorage: a list fails with the storage as it does without facts.
func TestFactsWithoutStorage(t *testing.T) {
	t.Parallel()
	s := withFacts(t)
	s.Put(t, "img/sized/a.png", pngOf(60, 30))
	s.Driver.Fail = func(op, _ string) error {
		if op == "open" {
			return storagedrivers.ErrUnavailable
		}
		return nil
	}
	httpCase{Target: itemsPath + "image/sized?facts=1", Header: bearer, Status: 503}.Check(t, s)
	httpCase{Target: itemsPath + "image/sized", Header: bearer, Status: 200}.Check(t, s)
}
