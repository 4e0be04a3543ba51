package caller

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
)

// TestSmallForm: a form of either type has each of its fields once.
func TestSmallForm(t *testing.T) {
	t.Parallel()
	const urlencoded, multipart = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	part := func(name, value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	both := part("user", "eva") + part("password", "a b")
	for name, c := range map[string]struct {
		contentType, body string
		status            int // of a refusal
		message           string
	}{
		"urlencoded":          {urlencoded, "user=e%76a&password=a+b&more=1&more=2", 0, ""},
		"charset":             {urlencoded + "; charset=UTF-8", "user=eva&password=a+b", 0, ""},
		"multipart":           {multipart, both + "--x--\r\n", 0, ""},
		"empty":               {urlencoded, "", 400, "user is missing"},
		"one field":           {urlencoded, "user=eva", 400, "password is missing"},
		"empty field":         {urlencoded, "user=eva&password=", 400, "password is missing"},
		"twice":               {urlencoded, "user=eva&password=a+b&user=eva", 400, "user is sent twice"},
		"twice in multipart":  {multipart, both + part("password", "a b") + "--x--\r\n", 400, "password is sent twice"},
		"malformed":           {urlencoded, "user=%zz&password=a+b", 400, "malformed"},
		"cut short":           {multipart, both[:len(both)-8], 400, "malformed"},
		"no boundary":         {"multipart/form-data", both + "--x--\r\n", 400, "malformed"},
		"JSON":                {"application/json", `{"user":"eva","password":"a b"}`, 415, "must be"},
		"no type":             {"", "user=eva&password=a+b", 415, "must be"},
		"too large":           {urlencoded, "user=eva&password=a+b&x=" + strings.Repeat("x", 64<<10), 413, "64 KiB"},
		"too large multipart": {multipart, both + part("x", strings.Repeat("x", 64<<10)) + "--x--\r\n", 413, "64 KiB"},
		"many fields":         {urlencoded, strings.Repeat("&a=", 1000) + "&user=eva&password=a+b", 400, "1000 fields"},
		"many parts":          {multipart, strings.Repeat(part("", ""), 1001) + both + "--x--\r\n", 400, "1000 fields"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		form, status, message := SmallForm.Read(httptest.NewRecorder(), r, time.Now, "user", "password")
		if status != c.status || !strings.Contains(message, c.message) || (message == "") != (c.message == "") {
			t.Errorf("%s: %d %q, want %d %q", name, status, message, c.status, c.message)
		}
		if c.status == 0 && (form.Get("user") != "eva" || form.Get("password") != "a b") {
			t.Errorf("%s: %v", name, form)
		}
	}
}

// TestFormFields: a number is written in decimal digits alone. An empty field counts as missing.
func TestFormFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"": 5, "1": 1, "100": 100} {
		f := FormFields{Form: url.Values{"n": {text}}}
		if got := f.Number("n", 5, 100); got != want || f.Problem != "" {
			t.Errorf("%q: %d, %s, want %d", text, got, f.Problem, want)
		}
	}
	for _, text := range []string{"0", "-1", "1.5", "x", "+1", "0x10", "1e3", " 1", "101", "9223372036854775808"} {
		f := FormFields{Form: url.Values{"n": {text}}}
		if f.Number("n", 5, 100); f.Problem != "the field n must be a whole number from 1 to 100" {
			t.Errorf("%q: %s", text, f.Problem)
		}
	}
	f := FormFields{Form: url.Values{"n": {"", ""}}}
	if f.Number("n", 5, 100); f.Problem != "the field n is sent twice" {
		t.Errorf("twice: %s", f.Problem)
	}
}

// TestFormMemory: a form of unknown length may be as large as the limit.
func TestFormMemory(t *testing.T) {
	t.Parallel()
	for length, want := range map[int64]int64{-1: 64 << 10, 0: 0, 100: 100, 1 << 20: 64 << 10} {
		if got := SmallForm.Memory(&http.Request{ContentLength: length}); got != want {
			t.Errorf("%d: %d, want %d", length, got, want)
		}
	}
}

// TestSmallFormDrips: a body is refused in time if its last bytes never arrive.
func TestSmallFormDrips(t *testing.T) {
	t.Parallel()
	almost := func() time.Time { return time.Now().Add(50*time.Millisecond - SmallForm.Time) }
	for mediaType, body := range map[string]string{
		"application/x-www-form-urlencoded": "user=x&password=",
		"multipart/form-data; boundary=x":   "--x\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, status, message := SmallForm.Read(w, r, almost, "user", "password")
			_ = httpx.AnswerAndLinger(w, r, almost, status, message)
		}))
		defer server.Close()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: "+mediaType+"\r\nContent-Length: 65536\r\n\r\n"+body)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body) // until the connection is closed
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "10 seconds") || err != nil {
			t.Errorf("%s: %d %s, %v", mediaType, answer.StatusCode, text, err)
		}
	}
}

// deadlines records the read deadlines of a request.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(deadline time.Time) error {
	d.set = append(d.set, deadline)
	return nil
}

// TestSmallFormDeadline: the handler has no deadline after the body is read.
func TestSmallFormDeadline(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a=b"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	form, _, message := SmallForm.Read(w, r, func() time.Time { return now }, "a")
	if message != "" || form.Get("a") != "b" {
		t.Errorf("%q %v", message, form)
	}
	if len(w.set) != 2 || !w.set[0].Equal(now.Add(10*time.Second)) || !w.set[1].IsZero() {
		t.Errorf("deadlines %v", w.set)
	}
}
