package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// remoteDriver is a driver with a real server.
type remoteDriver struct {
	name string
	// start starts a server with an empty backend, which ends with the test.
	start func(t testing.TB) remoteBackend
}

// remoteBackend is a backend on a real server.
type remoteBackend struct {
	// address is the host and port of the server.
	address string
	// driver returns the driver's part of a Caddyfile: for the server as seen at address, with all
	// keys below folder, and with the lines of more among its options.
	driver func(address, folder, more string) string
	// signs says whether the backend can sign addresses.
	signs signing
	// example are replacements, old and new text in turn, which adapt an example of the README to
	// this backend. env are the environment variables that the example uses ("NAME=value").
	example, env []string
	// rclone are the environment variables for rclone, which finds the backend as "bench:"+folder.
	rclone []string
	folder string
	// apart reports that data connections go directly to the server, even if the driver reaches it
	// through a proxy.
	apart bool
}

// signing says whether a backend can sign addresses.
type signing int

const (
	neverSigns signing = iota // like every backend of its type
	cannotSign                // for lack of a key
	signsForReal
)

// media returns the lines inside the global option media for a site on the backend at address. The
// files of its alias content keep their names, and those of over are replaced. The alias pictures
// has variants, and near is on the disk.
func (p remoteBackend) media(address, more string) string {
	return "tokens memory\n" + account + fmt.Sprintf(`
storage keep {
	%s
}
storage replace {
	%s
	overwrite_strategy overwrite
}
storage near {
	driver local $ROOT
}
image_alias content {
	storage keep
	webp
}
file_alias content {
	storage keep
	extensions bin
}
image_alias over {
	storage replace
	webp
}
file_alias over {
	storage replace
	extensions bin
}
file_alias near {
	storage near
	extensions bin
}
`, p.driver(address, "keep", more), p.driver(address, "replace", more))
}

// eachRemote runs a test with every driver.
func eachRemote(t *testing.T, test func(t *testing.T, p remoteBackend)) {
	for _, kind := range remoteDrivers {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.start(t)) })
	}
}

// startOn starts a Caddy whose storages are on the backend, and logs in.
func startOn(t *testing.T, p remoteBackend) (c *child, client *childClient, token string) {
	t.Helper()
	c = newChild(t)
	c.start(p.media(p.address, ""))
	client = c.http1()
	return c, client, client.mustLogin(t)
}

// uploadPicture stores a picture under an image alias, at its root.
func (c *childClient) uploadPicture(t *testing.T, token, alias, name, content string) childReply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/api/upload/image?sub_folder=%2F",
		childForm(alias, childPart{name, strings.NewReader(content)}))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+childBoundary)
	req.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	r, err := parseChildReply(answer)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get fetches an address of this service, or another one, without following redirects.
func (c *childClient) get(t *testing.T, address string, headers ...string) *reply {
	t.Helper()
	if strings.HasPrefix(address, "/") {
		address = c.base + address
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	plain := *c.Client
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return &reply{answer.StatusCode, answer.Proto, answer.Header, string(body)}
}
