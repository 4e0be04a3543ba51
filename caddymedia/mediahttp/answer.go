package mediahttp

import (
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/httpjson"
)

// answer writes v as a JSON response.
func answer(w http.ResponseWriter, status int, v any) error {
	if err := httpjson.Write(w, status, v); err != nil {
		return &Error{http.StatusInternalServerError, err}
	}
	return nil
}

// AnswerUnread writes v as the JSON response to a request whose body is not read to its end, and
// lingers. now is the clock. The error is an *[Error]; then nothing was written.
func AnswerUnread(w http.ResponseWriter, r *http.Request, now func() time.Time, status int, v any) error {
	err := answerUnread(w, r, status, v)
	Linger(w, r, now)
	return err
}

// answerUnread writes v as the JSON response to a request whose body is not read to its end. Over
// HTTP/1 it closes the connection. Otherwise the server would wait for the body before it responds:
// for a minute if the client waits for "100 Continue".
func answerUnread(w http.ResponseWriter, r *http.Request, status int, v any) error {
	closeUnread(w, r)
	return answer(w, status, v)
}

// noContent responds with 204 to a request whose body is not read.
func noContent(w http.ResponseWriter, r *http.Request) {
	closeUnread(w, r)
	w.WriteHeader(http.StatusNoContent)
}

func closeUnread(w http.ResponseWriter, r *http.Request) {
	if hasUnread(r) {
		w.Header().Set("Connection", "close")
	}
}
