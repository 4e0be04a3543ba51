package mediahttp_test

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// fault fails one operation of a storage.
type fault struct {
	mu    sync.Mutex
	err   error
	after int // operations that succeed before
	hit   string
}

func (f *fault) arm(err error, after int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.after, f.hit = err, after, ""
}

// disarm returns the operation that has failed, if any.
func (f *fault) disarm() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = nil
	return f.hit
}

func (f *fault) fail(op, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || f.hit != "" || op == "check" {
		return nil
	}
	if f.after--; f.after >= 0 {
		return nil
	}
	f.hit = op + " " + key
	return f.err
}

func withFault(t *testing.T, b backend) (*site, *fault) {
	t.Helper()
	f := new(fault)
	return b.site(t, f.fail), f
}

// TestResumableFaults fails each operation of the storage in each step. The answer is 502 or 507, and
// a client that continues stores the item once, with all of its bytes.
func TestResumableFaults(t *testing.T) {
	t.Parallel()
	failures := map[error]int{fs.ErrPermission: 502, storagedrivers.ErrNoSpace: 507}
	for step := range 5 {
		for err, status := range failures {
			onEach(t, fmt.Sprintf("step %d, %d", step, status), func(t *testing.T, b backend) {
				for after := range 100 {
					s, f := withFault(t, b)
					c := &tusClient{site: s, fault: f, step: step, err: err, after: after, status: status}
					c.upload(t)
					if c.hit == "" {
						return
					}
					if t.Failed() {
						t.Fatalf("operation %d: %s", after, c.hit)
					}
				}
				t.Error("endless operations")
			})
		}
	}
}

// tusClient uploads in two parts and a third piece, and continues after failures. One of its steps
// meets a fault.
type tusClient struct {
	*site
	fault  *fault
	step   int
	err    error
	after  int
	status int
	hit    string
}

// do sends a request, with the fault if it belongs to the step. ok is false if it has failed by the
// fault.
func (c *tusClient) do(t *testing.T, step int, method, address, header, body string) (got *reply, ok bool) {
	t.Helper()
	r := c.request(t, method, address, tusHeader+header, body)
	if step == c.step {
		c.fault.arm(c.err, c.after)
	}
	got = c.tusRequest(t, r)
	if step == c.step {
		c.hit, c.step = c.fault.disarm(), -1
		if got.status == c.status && c.hit != "" {
			return got, false
		}
	}
	if got.status >= 300 {
		t.Fatalf("%s in step %d: %d %s", method, step, got.status, got.body)
	}
	return got, true
}

// retry repeats a request that fails by the fault.
func (c *tusClient) retry(t *testing.T, step int, method, address, header, body string) *reply {
	t.Helper()
	for {
		if got, ok := c.do(t, step, method, address, header, body); ok {
			return got
		}
	}
}

// append sends the bytes from the offset of the upload on, until all are stored.
func (c *tusClient) append(t *testing.T, step int, address, bytes string) {
	t.Helper()
	for {
		head := c.retry(t, -2, http.MethodHead, address, "", "")
		offset, err := strconv.Atoi(head.header.Get("Upload-Offset"))
		if err != nil {
			t.Fatal(err)
		}
		if offset == len(bytes) {
			return
		}
		c.do(t, step, http.MethodPatch, address, fmt.Sprintf("%sUpload-Offset: %d\n", tusBody, offset), bytes[offset:])
	}
}

func (c *tusClient) upload(t *testing.T) {
	t.Helper()
	first := c.retry(t, 0, http.MethodPost, resumablePath, "Upload-Concat: partial\nUpload-Length: 6\n", "").header.Get(location)
	c.append(t, 1, first, "hello ")
	second := c.retry(t, 2, http.MethodPost, resumablePath, tusBody+"Upload-Concat: partial\nUpload-Length: 5\n", "world").header.Get(location)
	c.append(t, -2, second, "world")
	final := c.retry(t, 3, http.MethodPost, resumablePath, aText+"Upload-Concat: final;"+first+" "+second+"\n", "").header.Get(location)
	c.retry(t, -2, http.MethodGet, final, "", "").items(t)
	whole := c.retry(t, -2, http.MethodPost, resumablePath, metadata("filename", "b.txt")+"Upload-Length: 3\n", "").header.Get(location)
	c.append(t, 4, whole, "abc")
	c.retry(t, -2, http.MethodGet, whole, "", "").items(t)
	if items := c.items(t); !maps.Equal(items, map[string]string{"file/content/a.txt": "hello world", "file/content/b.txt": "abc"}) {
		t.Errorf("items %v", items)
	}
}

// TestResumableCreationFault: a creation with all bytes that fails is repeated by clients. The item is
// stored once.
func TestResumableCreationFault(t *testing.T) {
	t.Parallel()
	onEach(t, "507", func(t *testing.T, b backend) {
		for after := range 100 {
			s, f := withFault(t, b)
			c := &tusClient{site: s, fault: f, err: storagedrivers.ErrNoSpace, after: after, status: 507}
			got, ok := c.do(t, 0, http.MethodPost, resumablePath, tusBody+aText+"Upload-Length: 5\n", "hello")
			if !ok && got.header.Get(location) == "" {
				c.retry(t, 0, http.MethodPost, resumablePath, tusBody+aText+"Upload-Length: 5\n", "hello")
			} else {
				c.append(t, -2, got.header.Get(location), "hello")
			}
			if items := s.items(t); len(items) != 1 {
				t.Errorf("operation %d (%s): items %v", after, c.hit, items)
			}
			if c.hit == "" {
				return
			}
		}
		t.Error("endless operations")
	})
}
