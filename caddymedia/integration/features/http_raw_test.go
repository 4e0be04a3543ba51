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

// TestExpectContinue: a client that asks before sending a body gets the refusal at once.
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
}

// TestExpectContinueAccepted: a valid upload that waits for 100 Continue is stored.
func TestExpectContinueAccepted(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: site.Prompt}}
	defer client.CloseIdleConnections()
	r := s.Request(t, http.MethodPost, "/api/upload/image",
		site.Merged(s.Credentials(t), site.FormType, site.Headers("Expect", "100-continue")), strings.NewReader(site.Form(site.File("a.gif", sample.GIF(t)))))
	s.Send(t, client, r).One(t)
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
