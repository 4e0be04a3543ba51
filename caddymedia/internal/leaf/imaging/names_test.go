package imaging

import (
	"slices"
	"testing"

	"github.com/gabriel-vasile/mimetype"
)

// TestNamesOfSniffer compares the names that is compares with those of the sniffer, which has other
// ones too.
func TestNamesOfSniffer(t *testing.T) {
	t.Parallel()
	names := slices.Concat(signedTypes, []string{
		octetStream, plainText, "text/xml", "image/svg+xml", "image/avif", "image/apng", "image/heif", "image/heif-sequence",
		"audio/mpeg", "application/xhtml+xml", "application/x-ole-storage",
	})
	for _, kind := range activeKinds {
		names = append(names, kind.types...)
	}
	for _, kind := range rasters {
		names = append(names, kind.mediaType)
	}
	for _, name := range names {
		if m := mimetype.Lookup(name); m == nil || m.String() != name {
			t.Errorf("%s: the sniffer says %v", name, m)
		}
	}
}
