package naming

import "testing"

func TestRestrictedFindsNeverAllowedExtensions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, want string }{
		"plain":                           {"x.php", "php"},
		"any case":                        {"x.PhP", "php"},
		"a version":                       {"x.php5", "php5"},
		"any version":                     {"x.php81", "php81"},
		"phtml":                           {"x.phtml", "phtml"},
		"pht":                             {"x.pht", "pht"},
		"phtm":                            {"x.phtm", "phtm"},
		"source":                          {"x.phps", "phps"},
		"archive":                         {"x.phar", "phar"},
		"shell":                           {"x.sh", "sh"},
		"bash":                            {"x.bash", "bash"},
		"zsh":                             {"x.zsh", "zsh"},
		"ksh":                             {"x.ksh", "ksh"},
		"csh":                             {"x.csh", "csh"},
		"htaccess":                        {".htaccess", "htaccess"},
		"htpasswd":                        {".HTpasswd", "htpasswd"},
		"htaccess as an extension":        {"x.htaccess", "htaccess"},
		"user.ini":                        {".user.ini", "user.ini"},
		"user.ini dressed up":             {".USER.ini. ::$DATA", "user.ini"},
		"not the last":                    {"x.php.jpg", "php"},
		"first of three":                  {"x.sh.tar.gz", "sh"},
		"trailing dots and spaces":        {"x.PHP. . ", "php"},
		"trailing no-break space":         {"x.php\u00a0", "php"},
		"space before the next dot":       {"x.php .jpg", "php"},
		"fullwidth letters":               {"x.ｐｈｐ", "php"},
		"superscript letter":              {"x.pʰp", "php"},
		"circled letters, not the last":   {"x.ⓟⓗⓟ.jpg", "php"},
		"fullwidth dot":                   {"x．php", "php"},
		"one dot leader":                  {"x․php", "php"},
		"long s":                          {"x.ſh", "sh"},
		"digit of another script":         {"x.php५", "php5"},
		"accented":                        {"x.phṕ", "php"},
		"letter that reads as two":        {"x.ш", "sh"},
		"zero-width space":                {"x.p\u200bhp", "php"},
		"soft hyphen":                     {"x.p\u00adhp.jpg", "php"},
		"direction override":              {"x.\u202ephp", "php"},
		"variation selector":              {"x.ph\ufe0fp.jpg", "php"},
		"filler":                          {"x.php\u3164.jpg", "php"},
		"stream":                          {"x.php::$DATA", "php"},
		"named stream":                    {"x.php:a.jpg", "php"},
		"NUL":                             {"x.php\x00.jpg", "php"},
		"percent-encoded NUL":             {"x.php%00.jpg", "php"},
		"percent-encoded space":           {"x.php%20", "php"},
		"percent-encoded letter":          {"x.%70hp", "php"},
		"percent-encoded dot":             {"x%2Ephp.jpg", "php"},
		"percent-encoded twice":           {"x.%2570hp.jpg", "php"},
		"semicolon":                       {"x.php;.jpg", "php"},
		"query":                           {"x.php?.jpg", "php"},
		"back-up":                         {"x.php~", "php"},
		"sign that sanitizing removes":    {"x.$php!", "php"},
		"sign that sanitizing keeps":      {"x._php", "php"},
		"path after the script":           {"x.php/a.jpg", "php"},
		"folder":                          {"a/x.php", "php"},
		"folder with backslash":           {`a\.htaccess\b.jpg`, "htaccess"},
		"invalid UTF-8 around":            {"\xffx.php\xff", "php"},
		"extension of nothing else":       {".php", "php"},
		"picture":                         {"photo.jpg", ""},
		"word before the first dot":       {"php.jpg", ""},
		"no dot":                          {"php", ""},
		"htaccess as a base":              {"htaccess.txt", ""},
		"word within a part":              {"x.php-manual.pdf", ""},
		"word within a sentence":          {"about index.php files.pdf", ""},
		"longer word":                     {"x.shx", ""},
		"ini":                             {"user.ini", ""},
		"another ini":                     {".user.ini.jpg", ""},
		"similar letters of another kind": {"x.рнр.jpg", ""},
		"percent sign":                    {"100%.jpg", ""},
		"broken percent-encoding":         {"a%zz%4.jpg", ""},
		"empty":                           {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Restricted(tt.name); got != tt.want {
				t.Errorf("Restricted(%q) = %q, want %q", tt.name, got, tt.want)
			}
		})
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
