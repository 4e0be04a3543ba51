package edit

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/caddymedia/media/admin/api"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/storagedrivers/block"
	"github.com/caddymedia/media/storagedrivers/schema"
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

// What Caddy puts in front of the reason why it does not load a configuration.
const (
	ofApp    = "loading media app module: "
	ofConfig = "loading new config: "
)

var (
	ofProvision = regexp.MustCompile(`^provision media: `)
	ofDriver    = regexp.MustCompile(`loading the driver: loading module '[a-z0-9_]+': (provision media\.storages\.[a-z0-9_]+: )?`)
)

// readable takes from an error of Caddy what says nothing to an administrator.
func readable(message string) string {
	if _, after, ok := strings.Cut(message, ofApp); ok {
		message = ofProvision.ReplaceAllString(after, "")
		if at := ofDriver.FindStringIndex(message); at != nil {
			message = message[:at[0]] + message[at[1]:]
		}
		return message
	}
	return strings.TrimPrefix(message, ofConfig)
}

// blamed is the option that an error begins with in one of its parts: in "storage \"x\":
// sftp storage: address is missing" it is "driver.address". Empty if there is none.
func blamed(message string, options []schema.Option) string {
	for part := range strings.SplitSeq(message, ": ") {
		word, _, _ := strings.Cut(part, " ")
		if path := pathOf(word, "", options); path != "" {
			return path
		}
	}
	return ""
}

func pathOf(name, prefix string, options []schema.Option) string {
	for _, option := range options {
		path := prefix + option.Name
		if option.Type == schema.Group {
			if inner := pathOf(name, path+".", option.Options); inner != "" {
				return inner
			}
		}
		if option.Name == name && path != driverGroup {
			return path
		}
	}
	return ""
}

// scrubbed takes from the words of an error what nobody may see: the secrets of the running
// configuration and those that were submitted.
func scrubbed(err error, submitted map[string]string) error {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	var secrets []string
	if app, err := mediaapp.Active(); err == nil {
		secrets = app.Secrets()
	}
	for _, secret := range submitted {
		var expand block.Expander
		secrets = append(secrets, secret, expand.Text("", secret))
	}
	failed.Message = api.Scrub(failed.Message, secrets)
	return failed
}
