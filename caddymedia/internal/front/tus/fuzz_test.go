package tus

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
)

func FuzzParseMetadata(f *testing.F) {
	for _, seed := range []string{
		"", "filename YS50eHQ=", "filename YS50eHQ=,is_confidential", "a ,b", "a,a", ",", " ", "a  YQ==", "a YQ", "a\tYQ==", "a YQ==\r\n",
		strings.Repeat("k,", 4000), "a " + strings.Repeat("A", 8<<10), "\xff \x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		pairs, err := parseMetadata(header)
		if err != nil {
			return
		}
		if want := strings.Count(header, ",") + 1; len(pairs) != want && strings.TrimSpace(header) != "" {
			t.Errorf("%d pairs of %q, want %d", len(pairs), header, want)
		}
		for key := range pairs {
			if key == "" || strings.ContainsAny(key, " ,") {
				t.Errorf("key %q", key)
			}
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "007", "-1", "+1", "1e3", "0x10", "1_0", " 1", "", "9223372036854775807", "9223372036854775808", "99999999999999999999", "٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		n, err := number("x", value)
		switch {
		case err != nil:
			if value != "" && strings.Trim(value, "0123456789") == "" {
				t.Errorf("%q: %v", value, err)
			}
		case n < 0:
			t.Errorf("%q is %d", value, n)
		case n < math.MaxInt64 && strconv.FormatInt(n, 10) != strings.TrimLeft(value[:len(value)-1], "0")+value[len(value)-1:]:
			t.Errorf("%q is %d", value, n)
		}
	})
}

func FuzzReadConcat(f *testing.F) {
	for _, seed := range []string{
		"partial", "final;", "final;/a", "final;/a /b", "final; a  b ", "final;http://host/a?b#c", "final;%2e%2e", "final;../..", "final;\x00", "final;:",
		"final;" + strings.Repeat("a ", 1001),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		rec := new(resumable.Record)
		if err := readConcat(http.Header{headerConcat: {value}}, rec); err != nil || value == "" {
			return
		}
		if (rec.Form == resumable.Final) != (len(rec.Parts) > 0) || len(rec.Parts) > maxParts || rec.Form.HasItem() != (rec.Concat != "") {
			t.Errorf("%q: %+v", value, rec)
		}
		for _, part := range rec.Parts {
			if strings.Contains(strings.TrimPrefix(part, "/"), "/") {
				t.Errorf("part %q of %q", part, value)
			}
		}
	})
}

func FuzzChecksum(f *testing.F) {
	for _, seed := range []string{
		"", "sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha256 LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=", "sha1", "sha1 ", "sha1  AAAA", "md5 AAAA",
		"SHA1 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha1\tqvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=\n", "sha1 \r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		sum, newHash, err := readChecksum(http.Header{headerChecksum: {value}})
		switch {
		case err != nil:
		case (sum == nil) != (value == ""):
			t.Errorf("%q is %x", value, sum)
		case sum != nil && newHash().Size() != len(sum):
			t.Errorf("%q is %x for a hash of %d bytes", value, sum, newHash().Size())
		}
	})
}
