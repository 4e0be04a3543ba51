package mediaapp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"

	"github.com/caddyserver/caddy/v2"

	_ "github.com/caddymedia/media/caddymedia"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

// Go code in the same Caddy calls Acquire for each use, because a reload makes a new service.
func ExampleAcquire() {
	address, end := exampleCaddy()
	defer end()

	service, release, err := mediaapp.Acquire()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release()
	ctx := context.Background() // in a handler that of the request
	result := service.DownloadImage(ctx, address+"/Our%20Team.PNG", "people", "")
	fmt.Println(result.Success, result.Filename, result.FullPath)

	result = service.DownloadImage(ctx, "http://169.254.169.254/latest/meta-data/", "people", "")
	fmt.Println(result.Success, result.Message)
	// Output:
	// true our-team.png /static/img/people/our-team.png
	// false the address may not be fetched
}

// A handler can answer with the result as JSON.
func ExampleAcquire_form() {
	_, end := exampleCaddy()
	defer end()

	portrait := func(w http.ResponseWriter, r *http.Request) error {
		service, release, err := mediaapp.Acquire()
		if err != nil {
			return err
		}
		defer release()
		return json.NewEncoder(w).Encode(service.FormImage(r, "portrait", "people", "portraits"))
	}
	for _, name := range []string{"me.png", "me.gif"} {
		w := httptest.NewRecorder()
		if err := portrait(w, examplePost("portrait", name)); err != nil {
			fmt.Println(err)
		}
		fmt.Print(w.Body)
	}
	// Output:
	// {"success":true,"full_path":"/static/img/people/portraits/me.png","filename":"portraits/me.png"}
	// {"success":false,"message":"content is PNG, the name says .gif"}
}

// examplePicture returns a small PNG.
func examplePicture() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// examplePost returns a form with one image.
func examplePost(input, name string) *http.Request {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile(input, name)
	if err == nil {
		_, err = part.Write(examplePicture())
	}
	if err != nil {
		panic(err)
	}
	w.Close()
	r := httptest.NewRequest(http.MethodPost, "/portrait", &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}

// exampleCaddy runs Caddy with the alias "people", which may download from a server at address.
func exampleCaddy() (address string, end func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(examplePicture()) }))
	root, err := os.MkdirTemp("", "media-example-")
	if err != nil {
		panic(err)
	}
	port := netip.MustParseAddrPort(server.Listener.Addr().String()).Port()
	app := fmt.Appendf(nil, `{
		"tokens": {"store": "memory"},
		"storages": {"default": {"driver": {"name": "local", "root": %q}, "sub_folder_format": "/"}},
		"image_aliases": {"people": {}},
		"downloads": {"allow": ["127.0.0.1"], "ports": ["80", "%d"]}
	}`, root, port)
	config := &caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}},
		}},
		AppsRaw: caddy.ModuleMap{"media": app},
	}
	if err := caddy.Run(config); err != nil {
		panic(err)
	}
	return server.URL, func() {
		server.Close()
		if err := caddy.Stop(); err != nil {
			panic(err)
		}
		os.RemoveAll(root)
	}
}
