package s3

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// begin starts an upload in parts under a name in the bucket, and sends a part of 100 bytes.
func begin(t *testing.T, d *driver, name string) {
	t.Helper()
	out, err := d.client.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: &d.bucket, Key: &name})
	test.Must(t, err)
	number := int32(1)
	_, err = d.client.UploadPart(t.Context(), &awss3.UploadPartInput{
		Bucket: &d.bucket, Key: &name, UploadId: out.UploadId, PartNumber: &number, Body: content('x', 100),
	})
	test.Must(t, err)
}

// later sets a driver's clock two days ahead.
func later(d *driver) *driver {
	d.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	return d
}

// TestSweepLeavesOthers: uploads and objects outside of the prefix, or without a valid key, stay.
func TestSweepLeavesOthers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) {
		c := s.fresh(t)
		c.Prefix = "mine"
		d := later(s.driver(t, c))
		defer d.Close()
		probe := "mine/" + probePrefix
		for _, name := range []string{"mine/a/ü +%41", "mine/b", "mine/b", "mine/.other", "other", "mine2", probe + "1"} {
			begin(t, d, name)
		}
		for _, name := range []string{probe + "2", "mine/.media", probePrefix + "3"} {
			if _, err := d.client.PutObject(t.Context(), &awss3.PutObjectInput{
				Bucket: &d.bucket, Key: &name, Body: content('x', 5),
			}); err != nil {
				t.Fatal(err)
			}
		}
		put(t, d, "object", content('a', 10), create)
		want := map[string]int64{"a/ü +%41": 100, "b": 100, probePrefix + "1": 100, probePrefix + "2": 5}
		for _, dry := range []bool{true, false} {
			left, err := d.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: dry})
			test.Is(t, err, nil)
			test.Equal(t, len(left), 5, "dry run", dry, "swept")
			for _, one := range left {
				if size, ok := want[one.Name]; !ok || one.Size != size || time.Since(one.ModTime) > time.Hour {
					t.Errorf("dry run %t: swept %+v", dry, one)
				}
			}
		}
		got := leftovers(t, d)
		slices.Sort(got)
		stay := []string{
			".media", probePrefix + "3", "object", "parts of mine/.other", "parts of mine2", "parts of other",
		}
		test.Same(t, got, stay, "the bucket has")
	})
}

// uploads is a service with old uploads, two on a page, whose last parts are younger, or one that
// returns no times. It records aborted uploads.
type uploads struct {
	age, part time.Duration
	untimed   bool
	refuse    map[string]int // the status of aborting a key
	aborted   []string
}

func (l *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ago := func(tag string, age time.Duration) string {
		if l.untimed {
			return ""
		}
		return "<" + tag + ">" + time.Now().Add(-age).UTC().Format(time.RFC3339) + "</" + tag + ">"
	}
	query := r.URL.Query()
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	switch {
	case r.Method == http.MethodDelete:
		if status := l.refuse[key]; status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, "<Error><Code>"+map[int]string{403: "AccessDenied", 404: "NoSuchUpload"}[status]+"</Code></Error>")
			return
		}
		l.aborted = append(l.aborted, key+" "+query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case query.Has("uploads"):
		names, next := []string{"a%2Bb", "c"}, "<IsTruncated>true</IsTruncated><NextKeyMarker>c%2Bd</NextKeyMarker><NextUploadIdMarker>7</NextUploadIdMarker>"
		if query.Get("key-marker") == "c+d" && query.Get("upload-id-marker") == "7" {
			names, next = []string{"e"}, ""
		}
		fmt.Fprintf(w, "<ListMultipartUploadsResult><EncodingType>url</EncodingType>%s", next)
		for _, name := range names {
			fmt.Fprintf(w, "<Upload><Key>%s</Key><UploadId>id-%s</UploadId>%s</Upload>", name, name, ago("Initiated", l.age))
		}
		io.WriteString(w, "</ListMultipartUploadsResult>")
	case query.Has("uploadId"):
		fmt.Fprintf(w, "<ListPartsResult><Part><Size>7</Size>%s</Part>"+
			"<Part><Size>5</Size>%s</Part></ListPartsResult>", ago("LastModified", l.age), ago("LastModified", l.part))
	default:
		fmt.Fprintf(w, "<ListBucketResult>")
		if l.untimed {
			fmt.Fprintf(w, "<Contents><Key>%s1</Key><Size>5</Size></Contents>", probePrefix)
		}
		fmt.Fprintf(w, "</ListBucketResult>")
	}
}

// TestSweepOfPages: the age of an upload is that of its last part, all pages are swept, and an
// upload that cannot be aborted does not prevent others from being aborted.
func TestSweepOfPages(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		uploads uploads
		opts    storagedrivers.SweepOptions
		want    []string
		aborted []string
		err     error
	}{
		"old":       {uploads{age: 3 * day, part: 2 * day}, storagedrivers.SweepOptions{}, []string{"a+b", "c", "e"}, []string{"a+b id-a%2Bb", "c id-c", "e id-e"}, nil},
		"dry":       {uploads{age: 3 * day, part: 2 * day}, storagedrivers.SweepOptions{DryRun: true}, []string{"a+b", "c", "e"}, nil, nil},
		"young":     {uploads{age: time.Hour, part: time.Hour}, storagedrivers.SweepOptions{OlderThan: 1}, nil, nil, nil},
		"under way": {uploads{age: 3 * day, part: time.Minute}, storagedrivers.SweepOptions{OlderThan: 1}, nil, nil, nil},
		"untimed":   {uploads{untimed: true}, storagedrivers.SweepOptions{}, nil, nil, nil},
		"younger":   {uploads{age: 3 * day, part: 2 * day}, storagedrivers.SweepOptions{OlderThan: 60 * time.Hour}, nil, nil, nil},
		"refused": {
			uploads{age: 3 * day, part: 2 * day, refuse: map[string]int{"a+b": 403, "c": 404}},
			storagedrivers.SweepOptions{},
			[]string{"c", "e"},
			[]string{"e id-e"},
			fs.ErrPermission,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&tt.uploads)
			defer server.Close()
			d := at(t, server.URL)
			left, err := d.Sweep(t.Context(), tt.opts)
			test.Is(t, err, tt.err)
			var got []string
			for _, one := range left {
				got = append(got, one.Name)
				if one.Size != 12 || time.Since(one.ModTime).Round(time.Hour) != tt.uploads.part {
					t.Errorf("swept %+v", one)
				}
			}
			if !slices.Equal(got, tt.want) || !slices.Equal(tt.uploads.aborted, tt.aborted) {
				t.Errorf("swept %q, aborted %q, want %q and %q", got, tt.uploads.aborted, tt.want, tt.aborted)
			}
		})
	}
}

func TestSweepOfAServiceThatDoesNotList(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		http.StatusNotImplemented:     errors.ErrUnsupported,
		http.StatusMethodNotAllowed:   errors.ErrUnsupported,
		http.StatusForbidden:          fs.ErrPermission,
		http.StatusServiceUnavailable: storagedrivers.ErrUnavailable,
	} {
		s := fake(t).refusing(t, status, "", func(r *http.Request) bool { return r.URL.Query().Has("uploads") })
		s.config.Bucket = "bucket"
		d := s.driver(t, s.config)
		defer d.Close()
		left, err := d.Sweep(t.Context(), storagedrivers.SweepOptions{})
		if !errors.Is(err, want) || left != nil {
			t.Errorf("status %d: swept %+v, error %v, want %v", status, left, err, want)
		}
	}
}
