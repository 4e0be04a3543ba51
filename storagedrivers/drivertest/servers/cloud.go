package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/xattr"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// S3 is an S3 service with one account.
type S3 struct {
	*Process
	// AccessKeyID and SecretAccessKey are those of the account, which has all rights.
	AccessKeyID, SecretAccessKey string
	// Objects is the folder with a folder for each bucket.
	Objects string
}

// VersityGW starts versitygw, which checks signatures and stores objects as files in a new folder.
func VersityGW(t testing.TB) *S3 {
	t.Helper()
	program := Program(t, "versitygw")
	folder := Folder(t)
	address := FreeAddress(t)
	account := S3{AccessKeyID: "media-test", SecretAccessKey: "media-test-secret", Objects: filepath.Join(folder, "objects")}
	args := []string{
		"--quiet", "--access", account.AccessKeyID, "--secret", account.SecretAccessKey, "--port", address,
		// Its unnamed temporary files cannot replace an object whose name is nearly as long as the
		// file system allows.
		"posix", "--disableotmp",
	}
	args = append(args, metadataOf(t, folder)...)
	account.Process = Start(t, address, func() *exec.Cmd {
		return exec.Command(program, append(args, account.Objects)...)
	})
	return &account
}

// metadataOf creates the folder for objects and returns the arguments for the storage of metadata:
// beside the objects if the file system has no extended attributes.
func metadataOf(t testing.TB, folder string) []string {
	t.Helper()
	objects, beside := filepath.Join(folder, "objects"), filepath.Join(folder, "metadata")
	for _, path := range []string{objects, beside} {
		test.Must(t, os.Mkdir(path, 0o755))
	}
	if err := xattr.Set(objects, "user.media-test", []byte("x")); err == nil {
		return nil
	}
	return []string{"--sidecar", beside}
}

// Credentials of Azurite.
const (
	AzuriteAccount = "devstoreaccount1"
	// AzuriteKey is public: every emulator has it.
	AzuriteKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Azure is a blob service with one account.
type Azure struct {
	*Process
	// Endpoint is the address of the account's blob service.
	Endpoint string
}

// Azurite starts an emulator that stores everything in memory and has no container yet.
func Azurite(t testing.TB) *Azure {
	t.Helper()
	program := Program(t, "azurite-blob")
	address := FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	test.Must(t, err)
	folder := Folder(t)
	process := Start(t, address, func() *exec.Cmd {
		// The emulator is older than the libraries and would refuse their API version.
		cmd := exec.Command(program, "--blobHost", host, "--blobPort", port, "--skipApiVersionCheck",
			"--inMemoryPersistence", "--silent", "--disableTelemetry")
		cmd.Dir = folder
		return cmd
	})
	return &Azure{Process: process, Endpoint: "http://" + address + "/" + AzuriteAccount}
}

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
	test.Must(t, err)
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
	test.Must(t, err)
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
		test.Must(t, err)
		var page struct {
			NextPageToken string
			Items         []struct{ Name string }
		}
		err = json.NewDecoder(answer.Body).Decode(&page)
		_, _ = io.Copy(io.Discard, answer.Body) // for the next request
		answer.Body.Close()
		test.Must(t, err, "listing bucket", bucket, answer.Status)
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if page.NextPageToken == "" {
			return names
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// WithRewrites returns a proxy in front of a fake-gcs-server that heeds the conditions of rewrites,
// which the server itself ignores. The proxy uploads the bytes of the source instead.
func (g GCS) WithRewrites(t testing.TB) GCS {
	t.Helper()
	target, err := url.Parse(g.Endpoint)
	test.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, to, rewrites := strings.Cut(r.URL.EscapedPath(), "/rewriteTo/b/")
		if !rewrites {
			proxy.ServeHTTP(w, r)
			return
		}
		status, answer, err := g.rewrite(r, from, to)
		if err != nil {
			status = http.StatusBadGateway
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	return GCS{server.URL}
}

// rewrite uploads the bytes of a source, with the metadata and the condition of a rewrite.
func (g GCS) rewrite(r *http.Request, from, to string) (status int, answer []byte, err error) {
	query := r.URL.Query()
	status, data, err := send(http.NewRequestWithContext(r.Context(), http.MethodGet,
		g.Endpoint+from+"?alt=media&generation="+query.Get("sourceGeneration"), nil))
	if err != nil || status != http.StatusOK {
		return status, []byte(`{"error":{"code":404,"message":"no source"}}`), err
	}
	bucket, name, _ := strings.Cut(to, "/o/")
	if name, err = url.PathUnescape(name); err != nil {
		return 0, nil, err
	}
	metadata := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&metadata); err != nil {
		return 0, nil, err
	}
	metadata["name"] = name
	head, err := json.Marshal(metadata)
	if err != nil {
		return 0, nil, err
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	kind := "application/json"
	for _, part := range [][]byte{head, data} {
		w, _ := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {kind}}) // a buffer has room
		_, _ = w.Write(part)
		kind = fmt.Sprint(metadata["contentType"])
	}
	_ = parts.Close()
	upload := url.Values{"uploadType": {"multipart"}, "name": {name}}
	if match := query.Get("ifGenerationMatch"); match != "" {
		upload.Set("ifGenerationMatch", match)
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost,
		g.Endpoint+"/upload/storage/v1/b/"+bucket+"/o?"+upload.Encode(), &body)
	if err == nil {
		request.Header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
	}
	status, answer, err = send(request, err)
	if status == http.StatusOK {
		answer = fmt.Appendf(nil, `{"done":true,"objectSize":"%d","totalBytesRewritten":"%[1]d","resource":%s}`, len(data), answer)
	}
	return status, answer, err
}

func send(request *http.Request, err error) (status int, body []byte, _ error) {
	if err != nil {
		return 0, nil, err
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
