package edit

import "testing"

func TestReadable(t *testing.T) {
	t.Parallel()
	options, err := Storages.options("sftp")
	if err != nil {
		t.Fatal(err)
	}
	const provision = "loading new config: loading media app module: provision media: "
	for message, want := range map[string]struct{ text, option string }{
		provision + `storage "x": sub_folder_format: bad`: {`storage "x": sub_folder_format: bad`, "sub_folder_format"},
		provision + `storage "x": loading the driver: loading module 'sftp': provision media.storages.sftp: sftp storage: address is missing`:                     {`storage "x": sftp storage: address is missing`, "driver.address"},
		provision + `storage "x": overwrite_strategy is append_time or overwrite, not "y"`:                                                                        {`storage "x": overwrite_strategy is append_time or overwrite, not "y"`, "overwrite_strategy"},
		"loading new config: loading http app module: provision http: server srv0: loading media app module: provision media: account \"k\" has no password hash": {`account "k" has no password hash`, ""},
		"loading new config: starting app http: listening on :80":                                                                                                 {"starting app http: listening on :80", ""},
		"loading new config: loading media app module: decoding module config: media: json: unknown field":                                                        {"decoding module config: media: json: unknown field", ""},
		`something else`: {`something else`, ""},
	} {
		text := readable(message)
		if text != want.text {
			t.Errorf("%s\ngives %s\nwant  %s", message, text, want.text)
		}
		if got := blamed(text, options); got != want.option {
			t.Errorf("%s: blames %q, want %q", text, got, want.option)
		}
	}
}
