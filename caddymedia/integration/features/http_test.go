package features_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestContract: the HTTP contract holds through a Caddyfile. Package mediahttp tests all of it.
func TestContract(t *testing.T) {
	s := site.Start(t, site.Basic+"limits {\nmax_file_size 100B\n}\n", "media\nrespond \"next\" 418")
	img := sample.JPEG(t, 4, 3)
	for content, got := range map[string]site.Stored{
		img:    s.UploadImage(t, site.Field("sub_folder", "/"), site.File("Photo.JPG", img)).One(t),
		"text": s.UploadFile(t, site.Field("sub_folder", "/"), site.File("a.txt", "text")).One(t),
	} {
		if r := s.Fetch(t, got.FullPath); r.Status != http.StatusOK || r.Body != content || r.Header.Get("ETag") == "" {
			t.Errorf("%s: %d, %d bytes, header %v", got.FullPath, r.Status, len(r.Body), r.Header)
		}
	}
	const item, nosniff = "/static/file/content/a.txt", "X-Content-Type-Options"
	header := site.Merged(s.Credentials(t), site.FormType)
	upload := func(name, path string, header http.Header, status int, parts ...site.Part) site.Case {
		return site.Case{Name: name, Method: http.MethodPost, Path: path, Header: header, Body: site.Form(parts...), WantStatus: status}
	}
	large := make([]byte, 101)
	site.CheckAll(t, s, []site.Case{
		upload("no token", "/api/upload/image", site.FormType, 401, site.File("a.jpg", img)),
		upload("no file", "/api/upload/image", header, 400),
		upload("unknown alias", "/api/upload/image?alias=none", header, 400, site.File("a.jpg", img)),
		upload("other content", "/api/upload/image", header, 415, site.File("a.png", img)),
		upload("restricted", "/api/upload/file", header, 415, site.File("a.php.txt", "x")),
		upload("too large", "/api/upload/file", header, 413, site.File("a.txt", string(large))),
		{Name: "method", Path: "/api/upload/image", WantStatus: 405, WantHeader: map[string]string{"Allow": "POST"}},
		{Name: "HEAD", Method: http.MethodHead, Path: item, WantStatus: 200, WantHeader: map[string]string{"Content-Length": "4", nosniff: "nosniff"}},
		{Name: "range", Path: item, Header: site.Headers("Range", "bytes=1-2"), WantStatus: 206, WantBody: "ex"},
		{Name: "missing", Path: item + "x", WantStatus: 404},
		{Name: "next handler", Path: "/static/other", WantStatus: 418, WantBody: "next"},
		{Name: "next handler for other methods", Method: http.MethodDelete, Path: item, WantStatus: 418},
	})
	if r := s.Login(t, site.APIKey, "guess"); r.Status != http.StatusUnauthorized {
		t.Errorf("wrong password: %d %s", r.Status, r.Body)
	}
	if stored := len(site.Files(t, s.Root)); stored != 2 {
		t.Errorf("%d files are stored, want 2", stored)
	}
}

// TestNoAccountIsLogged: a site on which no client can log in says so at its start.
func TestNoAccountIsLogged(t *testing.T) {
	s := site.Start(t, site.LocalDefault, "media")
	s.WaitForLog(t, "no account: no client can upload")
	s.Load(t, site.Config{Media: site.Basic, Site: "media"})
	if n := strings.Count(s.Logged(t), "no account"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// TestDocumentedHeaders: HTTP_SERVICE_API_KEY and HTTP_SERVICE_ACCESS_TOKEN work in upper and lower
// case, over every version of HTTP.
func TestDocumentedHeaders(t *testing.T) {
	s := site.StartConfig(t, site.Config{Media: site.Basic, Site: "media", TLS: true})
	token := s.Token(t, site.APIKey)
	spellings := map[string]http.Header{
		"upper": site.AuthHeader(site.APIKey, token),
		"lower": site.Headers("http_service_api_key", site.APIKey, "http_service_access_token", token),
		"mixed": site.Headers("Http_Service_Api_Key", site.APIKey, "Http_service_access_token", token),
	}
	for proto, client := range s.Clients(t) {
		for spelling, header := range spellings {
			t.Run(proto+" "+spelling, func(t *testing.T) {
				img := sample.JPEG(t, 5, 5)
				r := s.Send(t, client, s.Request(t, http.MethodPost, "/api/upload/image",
					site.Merged(header, site.FormType), strings.NewReader(site.Form(site.File("photo.jpg", img)))))
				if r.Proto != proto {
					t.Fatalf("the request went over %s", r.Proto)
				}
				path := strings.TrimPrefix(r.One(t).FullPath, s.URL)
				if got := s.Send(t, client, s.Request(t, http.MethodGet, path, nil, nil)); got.Body != img {
					t.Errorf("got back %d %.40q, want the upload", got.Status, got.Body)
				}
				wrong := site.Merged(header, site.FormType)
				for name := range header {
					wrong[name] = []string{"x"}
				}
				r = s.Send(t, client, s.Request(t, http.MethodPost, "/api/upload/image",
					wrong, strings.NewReader(site.Form(site.File("photo.jpg", img)))))
				r.Failures(t, http.StatusUnauthorized)
			})
		}
	}
}

// TestHeadersWithoutServerOption: Caddy removes the documented names, and the log names the missing
// option. The names without underscores work without the option.
func TestHeadersWithoutServerOption(t *testing.T) {
	s := site.StartConfig(t, site.Config{Media: site.Basic, Site: "media", DropUnderscores: true})
	const warning = "servers { expected_underscore_headers HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN }"
	s.WaitForLog(t, warning)
	if n := strings.Count(s.Logged(t), warning); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	token := s.Token(t, site.APIKey)
	for name, header := range map[string]http.Header{
		"plain names":            site.Headers("Service-Api-Key", site.APIKey, "Service-Access-Token", token),
		"bearer":                 site.Headers("Authorization", "Bearer "+token),
		"bearer small, with key": site.Headers("Authorization", "bearer "+token, "Service-Api-Key", site.APIKey),
	} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, http.MethodPost, "/api/upload/image", site.Merged(header, site.FormType), site.Form(site.File("a.gif", sample.GIF(t)))).One(t)
		})
	}
	r := s.Do(t, http.MethodPost, "/api/upload/image", site.Merged(site.AuthHeader(site.APIKey, token), site.FormType), site.Form(site.File("a.gif", sample.GIF(t))))
	r.Failures(t, http.StatusUnauthorized)
}

// TestHeadersServerOptionPattern: the option may also have a pattern. No warning is logged.
func TestHeadersServerOptionPattern(t *testing.T) {
	s := site.StartConfig(t, site.Config{
		Media: site.Basic, Site: "media", DropUnderscores: true, Servers: "expected_underscore_headers HTTP_SERVICE_*",
	})
	s.UploadImage(t, site.File("a.gif", sample.GIF(t))).One(t)
	if log := s.Logged(t); strings.Contains(log, "drops headers") {
		t.Errorf("a warning is logged: %s", log)
	}
}

// TestDottedHeaders: no other spelling of a name reaches the service as the documented one
// (GHSA-49wc-4hcv-v58q).
func TestDottedHeaders(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	token := s.Token(t, site.APIKey)
	body := site.Form(site.File("a.gif", sample.GIF(t)))
	for _, names := range [][2]string{
		{"HTTP.SERVICE.API.KEY", "HTTP.SERVICE.ACCESS.TOKEN"},
		{"Service_Api_Key", "Service_Access_Token"},
		{"Service.Api.Key", "Service.Access.Token"},
		{"HTTP_SERVICE-API-KEY", "HTTP_SERVICE-ACCESS-TOKEN"},
		{"HTTP_SERVICE.API_KEY", "HTTP_SERVICE.ACCESS_TOKEN"},
		{"X-Api-Key", "X-Access-Token"},
	} {
		header := site.Merged(site.Headers(names[0], site.APIKey, names[1], token), site.FormType)
		s.Do(t, http.MethodPost, "/api/upload/image", header, body).Failures(t, http.StatusUnauthorized)
	}
	s.WantNothing(t)
}

// TestCORS: a page of another origin may use the service over every version of HTTP, and read
// errors that Caddy writes. A reload ends it.
func TestCORS(t *testing.T) {
	const page = "https://www.example.com"
	config := site.Config{
		Media: site.Basic + "cors " + page + "\n", TLS: true,
		Site: "encode gzip\nmedia\nhandle_errors 404 {\nrespond \"no such item\" 404\n}\nrespond \"another page\" 200",
	}
	s := site.StartConfig(t, config)
	credentials := s.Credentials(t)
	from := site.Headers("Origin", page)
	ask := site.Merged(from, site.Headers("Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "content-type,http_service_access_token,http_service_api_key"))
	allowed := func(r *site.Reply, want string) {
		t.Helper()
		if got := r.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s %d: allowed %q, want %q", r.Proto, r.Status, got, want)
		}
	}
	clients := s.Clients(t)
	for proto, client := range clients {
		send := func(method, path string, header http.Header, body string) *site.Reply {
			return s.Send(t, client, s.Request(t, method, path, header, strings.NewReader(body)))
		}
		r := send(http.MethodOptions, "/api/upload/image", ask, "")
		if r.Proto != proto || r.Status != http.StatusNoContent || r.Header.Get("Access-Control-Max-Age") != "86400" || r.Body != "" {
			t.Errorf("preflight: %+v", r)
		}
		allowed(r, page)
		r = send(http.MethodPost, "/api/upload/image", site.Merged(from, credentials, site.FormType), site.Form(site.File("a.gif", sample.GIF(t))))
		allowed(r, page)
		path := strings.TrimPrefix(r.One(t).FullPath, s.URL)
		r = send(http.MethodGet, path, from, "")
		allowed(r, page)
		r = send(http.MethodGet, path+"x", from, "")
		allowed(r, page)
		if r.Status != http.StatusNotFound || r.Body != "no such item" || r.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(strings.Join(r.Header["Vary"], ","), "Origin") {
			t.Errorf("missing item: %+v", r)
		}
		allowed(send(http.MethodOptions, "/elsewhere", ask, ""), "")
	}
	config.Media = site.Basic
	s.Load(t, config)
	r := s.Do(t, http.MethodOptions, "/api/upload/image", ask, "")
	allowed(r, "")
	if r.Status != http.StatusMethodNotAllowed || r.Header["Access-Control-Max-Age"] != nil {
		t.Errorf("without cors: %+v", r)
	}
}

// TestExpectContinue: a client that asks before sending a body gets the refusal at once, and else
// is asked for it.
func TestExpectContinue(t *testing.T) {
	s := site.Start(t, site.Basic+"limits {\nmax_body 64KiB\n}\n", "media")
	token := s.Token(t, site.APIKey)
	credentials := "HTTP_SERVICE_API_KEY: " + site.APIKey + "\r\nHTTP_SERVICE_ACCESS_TOKEN: " + token + "\r\n"
	const multipart = "Content-Type: multipart/form-data; boundary=x\r\n"
	for name, c := range map[string]struct {
		head string
		want int
	}{
		"no credentials": {"POST /api/upload/image HTTP/1.1\r\n" + multipart + "Content-Length: 1000000000\r\n", 401},
		"wrong token":    {"POST /api/upload/image HTTP/1.1\r\nAuthorization: Bearer x\r\n" + multipart + "Content-Length: 1000000000\r\n", 401},
		"too large":      {"POST /api/upload/image HTTP/1.1\r\n" + credentials + multipart + "Content-Length: 1000000000\r\n", 413},
		"no form":        {"POST /api/upload/image HTTP/1.1\r\n" + credentials + "Content-Length: 1000\r\n", 415},
		"alias twice":    {"POST /api/upload/image?alias=a&alias=b HTTP/1.1\r\n" + credentials + multipart + "Content-Length: 1000\r\n", 400},
		"chunked":        {"POST /api/upload/image HTTP/1.1\r\n" + multipart + "Transfer-Encoding: chunked\r\n", 401},
		"PUT":            {"PUT /api/upload/image HTTP/1.1\r\nContent-Length: 1000\r\n", 405},
		"token, json":    {"POST /api/auth/generateToken HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n", 415},
	} {
		for expect, line := range map[string]string{"asking": "Expect: 100-continue\r\n", "not asking": ""} {
			t.Run(name+" "+expect, func(t *testing.T) {
				conn := s.Dial(t)
				conn.SetDeadline(time.Now().Add(site.Prompt))
				fmt.Fprintf(conn, "%sHost: media.test\r\n%s\r\n", strings.Replace(c.head, "HTTP/1.1\r\n", "HTTP/1.1\r\n"+line, 1), "")
				r := site.ReadAnswer(t, conn)
				if r.Status != c.want {
					t.Errorf("status %d, want %d: %s", r.Status, c.want, r.Body)
				}
			})
		}
	}
	accepted := s.Request(t, http.MethodPost, "/api/upload/image",
		site.Merged(site.AuthHeader(site.APIKey, token), site.FormType, site.Headers("Expect", "100-continue")), strings.NewReader(site.Form(site.File("a.gif", sample.GIF(t)))))
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: site.Prompt}}
	defer client.CloseIdleConnections()
	s.Send(t, client, accepted).One(t)
}

// TestBodyCutShort: a client that sends less than declared gets 400, if it is still connected, and
// leaves nothing in the storage. The server continues to work.
func TestBodyCutShort(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	token := s.Token(t, site.APIKey)
	body := site.Form(site.File("a.gif", sample.GIF(t)), site.File("b.gif", sample.GIF(t)))
	head := func(length string) string {
		return "POST /api/upload/image HTTP/1.1\r\nHost: media.test\r\nAuthorization: Bearer " + token + "\r\n" +
			"Content-Type: multipart/form-data; boundary=" + site.FormBoundary + "\r\n" + length + "\r\n\r\n"
	}
	declared := head(fmt.Sprintf("Content-Length: %d", len(body)))
	for name, request := range map[string]string{
		"nothing":          declared,
		"in a file":        declared + body[:len(body)/2+30],
		"in a header":      declared + body[:40],
		"between files":    declared + body[:strings.LastIndex(body, "--"+site.FormBoundary+"\r\n")],
		"before the end":   declared + body[:len(body)-len("--\r\n")],
		"chunk cut":        head("Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s", len(body), body[:len(body)/2]),
		"last chunk lacks": head("Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n", len(body)/2, body[:len(body)/2]),
		"no chunk":         head("Transfer-Encoding: chunked") + body,
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.Dial(t)
			conn.SetDeadline(time.Now().Add(site.Prompt))
			io.WriteString(conn, request)
			conn.(*net.TCPConn).CloseWrite()
			site.ReadAnswer(t, conn).Failures(t, http.StatusBadRequest)
			s.WantNothing(t)

			gone := s.Dial(t)
			io.WriteString(gone, request)
			gone.Close()
		})
	}
	s.WaitForLog(t, "ends too early")
	s.WantNothing(t)
	s.UploadImage(t, site.File("a.gif", sample.GIF(t))).One(t)
}

// TestRefusalReachesWhoIsStillSending: a client that is sending a large body can read why it is
// refused. Its connection is not reset.
func TestRefusalReachesWhoIsStillSending(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	for round := range 5 {
		conn := s.Dial(t)
		conn.SetDeadline(time.Now().Add(2 * site.Prompt))
		const size = 64 << 20
		fmt.Fprintf(conn, "POST /api/upload/image HTTP/1.1\r\nHost: media.test\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: %d\r\n\r\n", size)
		if n, err := io.CopyN(conn, zeros{}, size); err != nil {
			t.Errorf("round %d: the connection broke after %d bytes: %v", round, n, err)
		}
		if r := site.ReadAnswer(t, conn); r.Status != http.StatusUnauthorized {
			t.Errorf("round %d: status %d, want 401", round, r.Status)
		}
		conn.Close()
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
