package api

import "testing"

// TestReason: the shortened error still names the option.
func TestReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"module name 'sftp': provision media.storages.sftp: sftp storage: address is missing":     "sftp storage: address is missing",
		"module name 's3': media.storages.s3: invalid configuration: s3 storage without a bucket": "s3 storage without a bucket",
		`module name 's3': decoding module config: media.storages.s3: json: unknown field "x"`:    `json: unknown field "x"`,
		"module name 'x': unknown module: media.storages.x":                                       "unknown module: media.storages.x",
		"something else": "something else",
	} {
		if got := Reason(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
