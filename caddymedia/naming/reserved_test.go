package naming

import "testing"

func TestInUploadsFolder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"@uploads": true, "@uploads/": true, "a/@Uploads/b": true, "@uploads/open/x": true,
		"": false, "uploads/a": false, "a/@uploads.txt": false, "@uploadsx/a": false,
	} {
		if got := InUploadsFolder(path); got != want {
			t.Errorf("%q: got %t", path, got)
		}
	}
}
