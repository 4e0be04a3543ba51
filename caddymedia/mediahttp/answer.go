package mediahttp

import (
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/httpjson"
)

// answer answers with v as JSON.
func answer(w http.ResponseWriter, status int, v any) error {
	if err := httpjson.Write(w, status, v); err != nil {
		return &Error{http.StatusInternalServerError, err}
	}
	return nil
}

// AnswerUnread answers with v as JSON a request whose body is not read to its end, and lingers. now is
// the clock. The error is an *[Error]; nothing was answered then.
func AnswerUnread(w http.ResponseWriter, r *http.Request, now func() time.Time, status int, v any) error {
	err := answerUnread(w, r, status, v)
	Linger(w, r, now)
	return err
}

// answerUnread answers with v as JSON a request whose body is not read to its end. Over HTTP/1 that
// ends the connection: otherwise the server waits for the body before it answers, a minute if the
// client in turn waits for "100 Continue".
func answerUnread(w http.ResponseWriter, r *http.Request, status int, v any) error {
	if hasUnread(r) {
		w.Header().Set("Connection", "close")
	}
	return answer(w, status, v)
}
