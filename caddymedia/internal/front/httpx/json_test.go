package httpx

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := WriteJSON(w, http.StatusTeapot, map[string]string{"a": "<b>"}); err != nil {
		t.Fatal(err)
	}
	h := w.Header()
	if w.Code != http.StatusTeapot || w.Body.String() != `{"a":"<b>"}`+"\n" || h.Get("Content-Length") != "12" ||
		h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %s, %v", w.Code, w.Body, h)
	}
	w = httptest.NewRecorder()
	if err := WriteJSON(w, http.StatusOK, func() {}); err == nil || w.Body.Len() > 0 || len(w.Header()) > 0 {
		t.Errorf("error %v, answer %q, %v", err, w.Body, w.Header())
	}
}

func TestReadJSON(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body          string
		wrong, tooBig bool
	}{
		"a value":            {`{"n": 12345678901234567890}`, false, false},
		"white space behind": {"{\"n\": 12345678901234567890}\r\n ", false, false},
		"nothing":            {"", true, false},
		"an unknown field":   {`{"m": 1}`, true, false},
		"two values":         {`{"n": 1} {}`, true, false},
		"not ended":          {`{"n": 1`, true, false},
		"garbage behind":     {`{"n": 1}}`, true, false},
		"too large":          {`{"n": ` + strings.Repeat("1", 64) + `}`, true, true},
		"too much behind":    {`{"n": 1}` + strings.Repeat(" ", 64), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got struct {
				N any `json:"n"`
			}
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body))
			err := ReadJSON(httptest.NewRecorder(), r, 64, &got)
			_, tooBig := errors.AsType[*http.MaxBytesError](err)
			if (err != nil) != test.wrong || tooBig != test.tooBig {
				t.Fatalf("error %v", err)
			}
			if !test.wrong && got.N != json.Number("12345678901234567890") {
				t.Errorf("read %v", got.N)
			}
		})
	}
}
