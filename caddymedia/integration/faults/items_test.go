package faults_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// local is a folder of this host, which several Caddys may share.
var local = site.RemoteDriver{Name: "local", Start: func(testing.TB) site.Backend {
	return site.Backend{Driver: func(_, folder, _ string) string { return "driver local $ROOT/" + folder }}
}}

// mayAll is the account of the tests, with all rights for items.
var mayAll = strings.TrimSuffix(site.Account, "\n") + " {\n\tmay upload list delete replace move copy\n}\n"

// node is a Caddy, and a client of it.
type node struct {
	*site.Child
	media  string
	client *site.Client
	token  string
}

// newNodes starts Caddys on one backend.
func newNodes(t *testing.T, p site.Backend, number int) []*node {
	t.Helper()
	nodes := make([]*node, number)
	for i := range nodes {
		n := &node{Child: site.NewChild(t), media: strings.Replace(p.Media(p.Address, ""), site.Account, mayAll, 1)}
		n.client = n.HTTP1()
		if nodes[i] = n; i > 0 {
			n.Root = nodes[0].Root
		}
		n.start(t)
	}
	return nodes
}

func (n *node) start(t *testing.T) {
	t.Helper()
	n.Start(n.media)
	n.token = n.client.MustLogin(t)
}

// change is a request that changes items.
type change struct {
	method, kind, name string
	to, copyTo         string // of a POST
	content            string // of a PUT
	match              string // If-Match
	names              []string

	// The answer. The status is 0 if there is none.
	status int
	answer site.Answer
}

// send sends the request through a node.
func (c *change) send(ctx context.Context, n *node) error {
	body, form := c.content, url.Values{}
	for name, value := range map[string]string{"to": c.to, "copy_to": c.copyTo} {
		if value != "" {
			form.Set(name, value)
		}
	}
	if c.names != nil {
		form = url.Values{"action": {"delete"}, "filename": c.names}
	}
	if c.method == http.MethodPost {
		body = form.Encode()
	}
	address := n.client.Base + "/api/items/" + c.kind + "/over"
	if c.name != "" {
		address += "/" + c.name
	}
	r, err := http.NewRequestWithContext(ctx, c.method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+n.token)
	if c.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if c.match != "" {
		r.Header.Set("If-Match", c.match)
	}
	answer, err := n.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	c.answer, err = site.ParseAnswer(answer)
	if err == nil {
		c.status = c.answer.Status
	}
	return err
}

// String returns the request and its answer.
func (c *change) String() string {
	text := c.method + " " + c.name
	for before, value := range map[string]string{" to ": c.to, " copied to ": c.copyTo, " if ": c.match} {
		if value != "" {
			text += before + value
		}
	}
	return text + ": " + c.answer.String()
}

// fetch returns an item, or a variant, and its entity tag. A missing one has neither.
func (n *node) fetch(t *testing.T, path string) (content, tag string) {
	t.Helper()
	r, err := site.Retry(func() (*http.Response, error) {
		r, err := n.client.Get(n.client.Base + "/static/" + path)
		if err != nil {
			err = site.UnansweredError{Err: err}
		}
		return r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		t.Fatal(err)
	case r.StatusCode == http.StatusNotFound:
		return "", ""
	case r.StatusCode != http.StatusOK:
		t.Fatalf("%s: status %d %s", path, r.StatusCode, body)
	}
	return string(body), r.Header.Get("ETag")
}

// put stores an item.
func (n *node) put(t *testing.T, kind, name, content string) {
	t.Helper()
	if kind == "file" {
		n.client.MustPut(t, n.token, "over", name, []byte(content))
	} else if r := n.client.UploadImage(t, n.token, "over", name, content); r.Status != http.StatusOK {
		t.Fatal(r)
	}
}
