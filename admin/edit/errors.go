package edit

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/redact"
)

// Error is a failure to read or change an entry, in words for the administrator.
type Error struct {
	// Status is the matching HTTP status.
	Status  int
	Message string
	// Option is the option at fault, if known: "driver.address".
	Option string
	// UsedBy are the uses that keep an entry from being removed.
	UsedBy []Use
	// Current is the present entry, if another change has been made to it meanwhile.
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
