package edit

import (
	"errors"
	"testing"

	_ "github.com/caddymedia/media/caddymedia/drivers/s3"
	_ "github.com/caddymedia/media/caddymedia/drivers/sftp"
)

// parsed decodes a JSON object.
func parsed(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := decode([]byte(text), &o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// loaded returns a configuration with the parts that the app adds.
func loaded(t *testing.T, text string) config {
	t.Helper()
	c, err := load(parsed(t, text), true)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return c
}

// mustEqual compares values as JSON.
func mustEqual(t *testing.T, got any, want string) {
	t.Helper()
	if g, w := sorted(t, canonical(got)), sorted(t, []byte(want)); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// sorted returns JSON with sorted keys.
func sorted(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := decode(text, &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return string(canonical(value))
}

// statusOf returns the status of an error and the option at fault.
func statusOf(err error) (int, string) {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Status, failed.Option
	}
	return 0, ""
}
