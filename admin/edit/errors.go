package edit

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/redact"
)

// Error is why something was not read or changed, in words for the administrator.
type Error struct {
	// Status is the HTTP status that fits.
	Status  int
	Message string
	// Option is the one that is to blame, if that is known: "driver.address".
	Option string
	// UsedBy is what keeps an entry from being removed.
	UsedBy []Use
	// Current is the entry as it is now, where somebody else has changed it meanwhile.
	Current *Entry
}

func (e *Error) Error() string { return e.Message }

func refused(option, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Option: option, Message: fmt.Sprintf(format, args...)}
}

func missing(s Section, name string) *Error {
	return &Error{Status: http.StatusNotFound, Message: "there is no " + s.title(name)}
}

// redacted removes the secrets of the running configuration and the submitted ones from the
// message of an error.
func redacted(err error, submitted map[string]string) error {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	var secrets []string
	if app, err := mediaapp.Active(); err == nil {
		secrets = app.Secrets()
	}
	for _, secret := range submitted {
		secrets = append(secrets, mediaapp.WithExpanded(secret)...)
	}
	failed.Message = redact.New(secrets...).Strict(failed.Message)
	return failed
}
