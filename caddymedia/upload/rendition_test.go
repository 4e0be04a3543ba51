package upload

import (
	"errors"
	"image/color"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

func TestRenditions(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, alias := withRenditions(t, open(t, nil))
			w := watch(u)
			items, failures := uploadPictures(t, u, field("sub_folder", "in/here"), file("a.png", picture(red)))
			if failures != nil {
				t.Fatal(failures)
			}
			want := map[string]string{
				"later": "https://cdn.example/static/img/content@later/in/here/a.png",
				"soon":  "https://cdn.example/static/img/content@soon/in/here/a.png",
			}
			if !maps.Equal(items[0].Renditions, want) {
				t.Errorf("renditions %v, want %v", items[0].Renditions, want)
			}
			wantRenditions(t, alias, "pics@renditions/3/in/here/a.png/soon.webp")
			wantRendition(t, u, request(t, alias, "soon", "in/here/a.png"), webpOf(red))
			wantRendition(t, u, request(t, alias, "later", "in/here/a.png"), webpOf(red))
			wantRenditions(t, alias, "pics@renditions/3/in/here/a.png/later.webp", "pics@renditions/3/in/here/a.png/soon.webp")
			if want := []string{"soon made", "later made"}; !slices.Equal(w.renditions, want) {
				t.Errorf("the observer was told of %q, want %q", w.renditions, want)
			}
			if err := u.Delete(t.Context(), alias, "in/here/a.png", aliases.Actor{}); err != nil {
				t.Error(err)
			}
			wantContents(t, alias.Storage, nil)
		})
	}
}

// TestRenditionOfReplaced: a rendition never outlives its picture.
func TestRenditionOfReplaced(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, alias := withRenditions(t, open(t, nil))
			alias.Overwrite = true
			for _, c := range []color.NRGBA{red, green, blue} {
				if _, failures := uploadPictures(t, u, file("a.png", picture(c))); failures != nil {
					t.Fatal(failures)
				}
				wantRenditions(t, alias, "pics@renditions/1/a.png/soon.webp")
				wantRendition(t, u, request(t, alias, "soon", "a.png"), webpOf(c))
				wantRendition(t, u, request(t, alias, "later", "a.png"), webpOf(c))
			}
		})
	}
}

// TestRenditionOvertaken: another process replaces the picture while its rendition is made.
func TestRenditionOvertaken(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/a.png", picture(red))
	var once sync.Once
	countPainted(u, func() {
		once.Do(func() {
			_, err := alias.Storage.Put(t.Context(), "pics/a.png", strings.NewReader(picture(green)),
				storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
			if err != nil {
				t.Error(err)
			}
		})
	})
	wantRendition(t, u, request(t, alias, "later", "a.png"), webpOf(green))
}

// TestRenditionDeletedMeanwhile: a rendition is not stored if its picture was deleted meanwhile.
func TestRenditionDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/a.png", picture(red))
	var once sync.Once
	countPainted(u, func() {
		once.Do(func() {
			if err := u.Delete(t.Context(), alias, "a.png", aliases.Actor{}); err != nil {
				t.Error(err)
			}
		})
	})
	if err := u.Derived.MakeRendition(t.Context(), request(t, alias, "later", "a.png")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	wantContents(t, alias.Storage, nil)
	if _, err := opened(t, u, request(t, alias, "later", "a.png")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestRenditionSettings(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*aliases.Rendition){
		"width":   func(r *aliases.Rendition) { r.Box.Width++ },
		"height":  func(r *aliases.Rendition) { r.Box.Height = 4 },
		"fit":     func(r *aliases.Rendition) { r.Box.Cover = true },
		"format":  func(r *aliases.Rendition) { r.Format = imaging.JPEG },
		"quality": func(r *aliases.Rendition) { r.Quality = 50 },
		"name":    func(r *aliases.Rendition) { r.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, alias := withRenditions(t, onMemory(t, nil))
			put(t, alias.Storage, "pics/a.png", picture(red))
			wantRendition(t, u, request(t, alias, "soon", "a.png"), webpOf(red))
			before := request(t, alias, "soon", "a.png").Rendition.Fingerprint()
			change(&alias.Renditions[1])
			r := &derived.RenditionRequest{Alias: alias, Rendition: &alias.Renditions[1], Filename: "a.png"}
			if after := r.Rendition.Fingerprint(); (after == before) != (name == "name") {
				t.Errorf("the fingerprint was %s and is %s", before, after)
			}
			if _, err := r.OpenRendition(t.Context(), alias.Storage.OpenSeeker); !errors.Is(err, derived.ErrNotMade) {
				t.Errorf("error %v, want ErrNotMade", err)
			}
		})
	}
}

func TestRenditionMadeOnce(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/a.png", picture(red))
	painted := countPainted(u, nil)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { wantRendition(t, u, request(t, alias, "later", "a.png"), webpOf(red)) })
	}
	all.Wait()
	if n := painted.Load(); n != 2 { // lossy and lossless
		t.Errorf("it was painted %d times", n)
	}
}

func TestNoRendition(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	if _, failures := uploadPictures(t, u, file("a.png", picture(unloved))); failures != nil {
		t.Fatal(failures)
	}
	put(t, alias.Storage, "pics/damaged.png", "no picture")
	for _, filename := range []string{"a.png", "damaged.png"} {
		if _, err := opened(t, u, request(t, alias, "later", filename)); !derived.IsUnrenderable(err) {
			t.Errorf("%s: error %v", filename, err)
		}
	}
	if _, err := opened(t, u, request(t, alias, "later", "none.png")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a picture: %v", err)
	}
	wantRenditions(t, alias)
}

// TestRenditionNotStored: a storage that refuses renditions neither fails uploads nor leaves a part.
func TestRenditionNotStored(t *testing.T) {
	t.Parallel()
	full := true
	s := onMemory(t, func(op, key string) error {
		if op == "put" && full && strings.Contains(key, "@renditions/") {
			return storagedrivers.ErrNoSpace
		}
		return nil
	})
	u, alias := withRenditions(t, s)
	if _, failures := uploadPictures(t, u, file("a.png", picture(red))); failures != nil {
		t.Fatal(failures)
	}
	r := request(t, alias, "soon", "a.png")
	if _, err := opened(t, u, r); !errors.Is(err, storagedrivers.ErrNoSpace) {
		t.Errorf("error %v", err)
	}
	wantRenditions(t, alias)
	full = false
	wantRendition(t, u, r, webpOf(red))
}

// TestRenditionWithoutMemory: without memory for eager renditions, they are made on request.
func TestRenditionWithoutMemory(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	u.Staging = NewStaging(0, 1<<20)
	if _, failures := uploadPictures(t, u, file("a.png", picture(red))); failures != nil {
		t.Fatal(failures)
	}
	wantRenditions(t, alias)
	wantRendition(t, u, request(t, alias, "soon", "a.png"), webpOf(red))
}

func TestRenditionOfSVG(t *testing.T) {
	t.Parallel()
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	u, alias := withRenditions(t, onMemory(t, nil))
	items, failures := uploadPictures(t, u, file("a.svg", svg))
	if failures != nil || len(items[0].Renditions) != 2 {
		t.Errorf("renditions %v, %v", items[0].Renditions, failures)
	}
	wantRendition(t, u, request(t, alias, "later", "a.svg"), svg)
	wantRenditions(t, alias)
}

// TestRenditionNegotiated: a rendition in the format of the picture is also made as WebP.
func TestRenditionNegotiated(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	alias.WebP, alias.Negotiate = new(render.Options), true
	for i := range alias.Renditions {
		alias.Renditions[i].Format = ""
	}
	if _, failures := uploadPictures(t, u, file("a.png", picture(red))); failures != nil {
		t.Fatal(failures)
	}
	wantRenditions(t, alias, "pics@renditions/1/a.png/soon.png", "pics@renditions/1/a.png/soon.webp")
	for _, name := range []string{"soon", "later"} {
		r := request(t, alias, name, "a.png")
		r.WebP = true
		wantRendition(t, u, r, webpOf(red))
		r.WebP = false
		if got, err := opened(t, u, r); !strings.HasPrefix(got, "\x89PNG") || err != nil {
			t.Errorf("%s is %.10q, %v", name, got, err)
		}
	}
}
