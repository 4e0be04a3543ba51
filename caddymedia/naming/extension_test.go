package naming

import "testing"

func TestExtensionIsTheLastOneInLowerCase(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"photo.JPG": "jpg", "archive.tar.gz": "gz", "photo": "", "": "", ".": "", "..": "", ".htaccess": "", ".hidden.jpg": "jpg",
		"photo.jpg. ": "jpg", "photo.jpg\u3000": "jpg", "photo.": "", "dir.d/photo": "", `dir.d\photo.png`: "png",
		"26-11/20/photo.webp": "webp", "x.php\u200b": "php\u200b",
	}
	for name, want := range tests {
		if got := Extension(name); got != want {
			t.Errorf("Extension(%q) = %q, want %q", name, got, want)
		}
	}
}
