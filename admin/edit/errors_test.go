package edit

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/admin/api"
)

func TestBlame(t *testing.T) {
	t.Parallel()
	const provision = "loading new config: loading media app module: provision media: "
	change := Change{Section: Storages, Name: "x", Value: object{driverGroup: object{driverKind: "sftp"}}}
	for message, want := range map[string]struct{ text, option string }{
		provision + `storage "x": sub_folder_format: bad`: {`storage "x": sub_folder_format: bad`, "sub_folder_format"},
		provision + `storage "x": loading the driver: loading module 'sftp': provision media.storages.sftp: sftp storage: address is missing`:                     {`storage "x": sftp storage: address is missing`, "driver.address"},
		provision + `storage "x": overwrite_strategy is append_time or overwrite, not "y"`:                                                                        {`storage "x": overwrite_strategy is append_time or overwrite, not "y"`, "overwrite_strategy"},
		provision + `storage "y": sftp storage: address is missing`:                                                                                               {`storage "y": sftp storage: address is missing`, ""},
		"loading new config: loading http app module: provision http: server srv0: loading media app module: provision media: account \"k\" has no password hash": {`account "k" has no password hash`, ""},
		"loading new config: starting app http: listening on :80":                                                                                                 {"starting app http: listening on :80", ""},
		"loading new config: loading media app module: decoding module config: media: json: unknown field":                                                        {"decoding module config: media: json: unknown field", ""},
		`something else`: {`something else`, ""},
	} {
		text := api.Reason(message)
		if text != want.text {
			t.Errorf("%s\ngives %s\nwant  %s", message, text, want.text)
		}
		if _, option := statusOf(change.blame(&Error{Status: http.StatusBadRequest, Message: text})); option != want.option {
			t.Errorf("%s: blames %q, want %q", text, option, want.option)
		}
	}
}
