package naming

import (
	"strings"
	"testing"
	"time"
)

func TestFormatFolder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.November, 20, 15, 4, 5, 6_000_000, time.UTC)
	tests := map[string]struct{ pattern, folder, again string }{
		"empty is the default":       {"", "26-11/20", "%y-%m/%d"},
		"default written out":        {"%y-%m/%d/", "26-11/20", "%y-%m/%d"},
		"root":                       {"/", "", "/"},
		"year and month":             {"%Y/%m", "2026/11", "%Y/%m"},
		"trailing slash":             {"%Y/", "2026", "%Y"},
		"literal text kept":          {"Photos_v1.0/%Y", "Photos_v1.0/2026", "Photos_v1.0/%Y"},
		"only literal text":          {"content", "content", "content"},
		"names":                      {"%B/%A/%b-%a-%h", "November/Friday/Nov-Fri-Nov", "%B/%A/%b-%a-%h"},
		"ISO date":                   {"%F", "2026-11-20", "%F"},
		"date of three levels":       {"%D", "11/20/26", "%D"},
		"hour without padding":       {"%-I%p", "3PM", "%-I%p"},
		"ISO week":                   {"%G-W%V", "2026-W47", "%G-W%V"},
		"seconds":                    {"%s", "1795187045", "%s"},
		"fractions, day of the year": {"%L-%f-%N-%j", "006-006000-006000000-324", "%L-%f-%N-%j"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := ParseFormat(tt.pattern)
			if err != nil {
				t.Fatalf("ParseFormat(%q): %v", tt.pattern, err)
			}
			if got := f.Folder(at); got != tt.folder {
				t.Errorf("Folder = %q, want %q", got, tt.folder)
			}
			if got := f.String(); got != tt.again {
				t.Errorf("String = %q, want %q", got, tt.again)
			}
			if again, err := ParseFormat(f.String()); err != nil || again != f {
				t.Errorf("ParseFormat(%q) = %v, %v, want the same format", f.String(), again, err)
			}
		})
	}
}

func TestParseFormatRefuses(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"//", "/%Y", "%Y//%m", "%Y//", "..", "%Y/..", "../%Y", ".%Y", "%Y/.x", "%Y.", `%Y\%m`, "%Y\n", "a b", "ěščř", "a\xff", "%Y?",
		"%", "%-", "%Y/%", "%i", "%%", "%c", "%e", "%k", "%l", "%n", "%t", "%r", "%R", "%T", "%v", "%X", "%z", "%Z", "%+", "%:z", "%Ey",
		"x.php/%Y", "x.php%y", ".htaccess", strings.Repeat("a/", 17), strings.Repeat("%D/", 6) + "a", strings.Repeat("%A", 30),
	} {
		if f, err := ParseFormat(pattern); err == nil {
			t.Errorf("ParseFormat(%q) = %v, want an error", pattern, f)
		} else {
			wantShowable(t, err)
		}
	}
}

func TestFormatFolderIsInTheZoneOfItsTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.December, 31, 23, 30, 0, 0, time.UTC).In(time.FixedZone("../x", 3600))
	if got := (Format{}).Folder(at); got != "27-01/01" {
		t.Errorf("Folder = %q, want 27-01/01", got)
	}
}

func TestFormatFolderFallsBackToTheDefault(t *testing.T) {
	t.Parallel()
	f, err := ParseFormat(strings.Repeat("%Y", 50))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Folder(time.Date(12345, time.May, 6, 0, 0, 0, 0, time.UTC)); got != "45-05/06" {
		t.Errorf("Folder = %q, want the default 45-05/06", got)
	}
}
