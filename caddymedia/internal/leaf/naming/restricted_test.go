package naming

import "testing"

func TestRestrictedFindsNeverAllowedExtensions(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		// Spellings of the words.
		"x.php": "php", "x.PhP": "php", "x.php5": "php5", "x.php81": "php81", "x.phtml": "phtml", "x.pht": "pht",
		"x.phtm": "phtm", "x.phps": "phps", "x.phar": "phar", "x.sh": "sh", "x.bash": "bash", "x.zsh": "zsh",
		"x.ksh": "ksh", "x.csh": "csh",
		// Names without a base.
		".htaccess": "htaccess", ".HTpasswd": "htpasswd", "x.htaccess": "htaccess", ".user.ini": "user.ini",
		".USER.ini. ::$DATA": "user.ini",
		// In any position, with anything behind.
		"x.php.jpg": "php", "x.sh.tar.gz": "sh", "x.PHP. . ": "php", "x.php\u00a0": "php", "x.php .jpg": "php",
		// Letters and dots that read alike.
		"x.ｐｈｐ": "php", "x.pʰp": "php", "x.ⓟⓗⓟ.jpg": "php", "x．php": "php", "x․php": "php", "x.ſh": "sh",
		"x.php५": "php5", "x.phṕ": "php", "x.ш": "sh",
		// Characters that are not seen.
		"x.p\u200bhp": "php", "x.p\u00adhp.jpg": "php", "x.\u202ephp": "php", "x.ph\ufe0fp.jpg": "php",
		"x.php\u3164.jpg": "php",
		// Endings that a system drops, and encodings of an address.
		"x.php::$DATA": "php", "x.php:a.jpg": "php", "x.php\x00.jpg": "php", "x.php%00.jpg": "php",
		"x.php%20": "php", "x.%70hp": "php", "x%2Ephp.jpg": "php", "x.%2570hp.jpg": "php", "x.php;.jpg": "php",
		"x.php?.jpg": "php", "x.php~": "php", "x.$php!": "php", "x._php": "php",
		// Within a path, and alone.
		"x.php/a.jpg": "php", "a/x.php": "php", `a\.htaccess\b.jpg`: "htaccess", "\xffx.php\xff": "php",
		".php": "php",
		// No extension of these.
		"photo.jpg": "", "php.jpg": "", "php": "", "htaccess.txt": "", "x.php-manual.pdf": "",
		"about index.php files.pdf": "", "x.shx": "", "user.ini": "", ".user.ini.jpg": "", "x.рнр.jpg": "",
		"100%.jpg": "", "a%zz%4.jpg": "", "": "",
	} {
		if got := Restricted(name); got != want {
			t.Errorf("Restricted(%+q) = %q, want %q", name, got, want)
		}
	}
}

func TestRestrictedExtensionOfAnAdministratorsList(t *testing.T) {
	t.Parallel()
	for _, ext := range []string{"PHP", ".php", "php5 ", " .Php7", "sh", "tar.sh", ".htaccess", ".user.ini", "ｐｈｐ", "*.php"} {
		if !RestrictedExtension(ext) {
			t.Errorf("RestrictedExtension(%q) = false, want true", ext)
		}
	}
	for _, ext := range []string{"jpg", ".jpg", "tar.gz", "ini", "shx", "", "xml", "phpx"} {
		if RestrictedExtension(ext) {
			t.Errorf("RestrictedExtension(%q) = true, want false", ext)
		}
	}
}
