package servers

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
)

// GCS is a server with the JSON protocol of Google Cloud Storage, without authentication.
type GCS struct {
	// Endpoint is its address.
	Endpoint string
}

// FakeGCS starts a fake-gcs-server that stores its objects in memory.
func FakeGCS(t testing.TB) (*Process, GCS) {
	t.Helper()
	program := Program(t, "fake-gcs-server")
	address := FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	process := Start(t, address, func() *exec.Cmd {
		// A public host without a port is also reached through a proxy.
		return exec.Command(program, "-scheme", "http", "-host", host, "-port", port, "-backend", "memory",
			"-public-host", host, "-log-level", "error")
	})
	return process, GCS{"http://" + address}
}

// Bucket creates an empty bucket.
func (g GCS) Bucket(t testing.TB, name string) {
	t.Helper()
	body := strings.NewReader(fmt.Sprintf(`{"name":%q}`, name))
	answer, err := http.Post(g.Endpoint+"/storage/v1/b?project=test", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("creating bucket %q: %s", name, answer.Status)
	}
}

// Objects lists the names of all objects of a bucket.
func (g GCS) Objects(t testing.TB, bucket string) []string {
	t.Helper()
	var names []string
	query := url.Values{}
	for {
		answer, err := http.Get(g.Endpoint + "/storage/v1/b/" + bucket + "/o?" + query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			NextPageToken string
			Items         []struct{ Name string }
		}
		err = json.NewDecoder(answer.Body).Decode(&page)
		_, _ = io.Copy(io.Discard, answer.Body) // for the next request
		answer.Body.Close()
		if err != nil {
			t.Fatalf("listing bucket %q: %s, %v", bucket, answer.Status, err)
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if page.NextPageToken == "" {
			return names
		}
		query.Set("pageToken", page.NextPageToken)
	}
}
