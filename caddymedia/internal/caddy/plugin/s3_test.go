package plugin

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestS3Caddyfile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text    string
		want    S3
		problem string
	}{
		{"media_s3", S3{}, ""},
		{"media_s3 {\nregion eu-north-1\ndomain s3.example.com\n}", S3{Region: "eu-north-1", Domain: "s3.example.com"}, ""},
		{"media_s3 x", S3{}, "wrong argument count"},
		{"media_s3 {\nregion\n}", S3{}, "wrong argument count"},
		{"media_s3 {\nregion a\nregion b\n}", S3{}, `option "region" of media_s3 is given twice`},
		{"media_s3 {\nbucket a\n}", S3{}, `unknown option "bucket" of media_s3; there are domain, region`},
	} {
		var got S3
		err := got.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.text))
		switch {
		case tt.problem == "" && (err != nil || got != tt.want):
			t.Errorf("%s: got %+v, %v", tt.text, got, err)
		case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)):
			t.Errorf("%s: %v, want %s", tt.text, err, tt.problem)
		}
	}
}
