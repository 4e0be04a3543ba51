package storagedrivers

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a key: 1,024 bytes in Amazon S3, Azure Blob and Google Cloud Storage, and 255 bytes per
// segment in file systems.
const (
	maxKeyBytes     = 1024
	maxSegmentBytes = 255
)

// ValidKey returns an error that wraps ErrInvalidKey if key may not name an object. A valid key
// consists of segments joined by single slashes, in valid UTF-8 without control characters and
// backslashes. No segment begins with a dot: this excludes "." and "..", and reserves such names
// for drivers. No segment ends with a space or a dot.
func ValidKey(key string) error {
	if key == "" || len(key) > maxKeyBytes {
		return fmt.Errorf("%w: %d bytes, want 1 to %d", ErrInvalidKey, len(key), maxKeyBytes)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: not UTF-8", ErrInvalidKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
		return fmt.Errorf("%w: control character or backslash", ErrInvalidKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if err := validSegment(segment); err != nil {
			return err
		}
	}
	return nil
}

func validSegment(segment string) error {
	switch {
	case segment == "":
		return fmt.Errorf("%w: empty segment", ErrInvalidKey)
	case len(segment) > maxSegmentBytes:
		return fmt.Errorf("%w: segment of %d bytes, want at most %d", ErrInvalidKey, len(segment), maxSegmentBytes)
	case segment[0] == '.':
		return fmt.Errorf("%w: segment begins with a dot", ErrInvalidKey)
	case strings.HasSuffix(segment, ".") || strings.HasSuffix(segment, " "):
		return fmt.Errorf("%w: segment ends in a dot or a space", ErrInvalidKey)
	}
	return nil
}

// validPrefix reports whether a valid key may begin with prefix.
func validPrefix(prefix string) bool {
	return prefix == "" || ValidKey(prefix) == nil || ValidKey(prefix+"x") == nil
}

// contentTypes are the media types of the known extensions, as registered by IANA or otherwise as
// browsers treat them. mime.TypeByExtension is not used, because its result depends on the machine.
var contentTypes = map[string]string{
	"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif",
	"webp": "image/webp", "svg": "image/svg+xml", "avif": "image/avif", "heic": "image/heic",
	"heif": "image/heif", "bmp": "image/bmp", "tif": "image/tiff", "tiff": "image/tiff",
	"ico": "image/vnd.microsoft.icon",

	"mp3": "audio/mpeg", "m4a": "audio/mp4", "aac": "audio/aac", "ogg": "audio/ogg",
	"oga": "audio/ogg", "opus": "audio/ogg", "wav": "audio/wav", "flac": "audio/flac",
	"mid": "audio/midi", "midi": "audio/midi", "weba": "audio/webm",

	"mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/quicktime", "webm": "video/webm",
	"mkv": "video/matroska", "avi": "video/x-msvideo", "ogv": "video/ogg", "mpg": "video/mpeg",
	"mpeg": "video/mpeg", "3gp": "video/3gpp", "wmv": "video/x-ms-wmv",

	"pdf": "application/pdf", "rtf": "application/rtf", "epub": "application/epub+zip",
	"doc":  "application/msword",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xls":  "application/vnd.ms-excel",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"ppt":  "application/vnd.ms-powerpoint",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"odt":  "application/vnd.oasis.opendocument.text",
	"ods":  "application/vnd.oasis.opendocument.spreadsheet",
	"odp":  "application/vnd.oasis.opendocument.presentation",

	"txt": "text/plain; charset=utf-8", "md": "text/markdown; charset=utf-8",
	"csv": "text/csv; charset=utf-8", "html": "text/html; charset=utf-8",
	"htm": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
	"js": "text/javascript; charset=utf-8", "json": "application/json", "xml": "application/xml",
	"ics": "text/calendar; charset=utf-8", "vcf": "text/vcard; charset=utf-8",
	"srt": "application/x-subrip", "vtt": "text/vtt; charset=utf-8",

	"zip": "application/zip", "7z": "application/x-7z-compressed", "rar": "application/vnd.rar",
	"tar": "application/x-tar", "gz": "application/gzip", "tgz": "application/gzip",
	"bz2": "application/x-bzip2", "xz": "application/x-xz", "zst": "application/zstd",
	"woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf",
}

// ContentType returns the media type for the extension of a key, "application/octet-stream" for an
// unknown one.
func ContentType(key string) string {
	name := key[strings.LastIndexByte(key, '/')+1:]
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		if t, ok := contentTypes[strings.ToLower(name[dot+1:])]; ok {
			return t
		}
	}
	return "application/octet-stream"
}
