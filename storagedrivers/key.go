package storagedrivers

import (
	"fmt"
	"path"
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

// Location identifies the backend of a driver and the folder of its objects, as configured.
// Storages with equal Locations have the same objects; credentials, time-outs and other settings
// may differ.
type Location struct {
	// Backend names the backend, in one spelling: "s3://amazonaws.com/bucket". It includes the user
	// if Root is relative to a folder of the user.
	Backend string
	// Root is the folder of the objects in the backend, a clean path with slashes. It begins with a
	// slash if the backend has absolute paths. Empty is the whole bucket, or the folder in which a
	// login starts.
	Root string
}

// Or returns l, or if it is zero, one that only the storage of that name has.
func (l Location) Or(name string) Location {
	if l == (Location{}) {
		l.Backend = "storage:" + name
	}
	return l
}

// Join returns the location of the object or folder name below l.
func (l Location) Join(name string) Location {
	if l.Root = path.Join(l.Root, name); l.Root == "." {
		l.Root = ""
	}
	return l
}

// Overlaps reports whether the locations are equal, or one lies within the other.
func (l Location) Overlaps(other Location) bool {
	return l.Backend == other.Backend && (within(l.Root, other.Root) || within(other.Root, l.Root))
}

func within(inner, outer string) bool {
	if outer == "" {
		return !path.IsAbs(inner) && inner != ".." && !strings.HasPrefix(inner, "../")
	}
	return strings.HasPrefix(inner+"/", strings.TrimSuffix(outer, "/")+"/")
}

// String returns a text that is equal only for equal locations.
func (l Location) String() string { return l.Backend + " " + l.Root }

// contentTypes are the media types of the known extensions, as registered by IANA or otherwise as
// browsers treat them. An administrator sets others in an alias. mime.TypeByExtension is not used,
// because its result depends on the machine.
var contentTypes = map[string]string{
	"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif",
	"webp": "image/webp", "svg": "image/svg+xml", "avif": "image/avif", "heic": "image/heic",
	"heif": "image/heif", "bmp": "image/bmp", "tif": "image/tiff", "tiff": "image/tiff",
	"ico": "image/vnd.microsoft.icon", "jxl": "image/jxl", "jp2": "image/jp2",

	"mp3": "audio/mpeg", "m4a": "audio/mp4", "aac": "audio/aac", "ogg": "audio/ogg",
	"oga": "audio/ogg", "opus": "audio/ogg", "wav": "audio/wav", "flac": "audio/flac",
	"mid": "audio/midi", "midi": "audio/midi", "weba": "audio/webm", "amr": "audio/amr",
	"aif": "audio/aiff", "aiff": "audio/aiff", "caf": "audio/x-caf", "wma": "audio/x-ms-wma",

	"mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/quicktime", "webm": "video/webm",
	"mkv": "video/matroska", "avi": "video/x-msvideo", "ogv": "video/ogg", "mpg": "video/mpeg",
	"mpeg": "video/mpeg", "3gp": "video/3gpp", "3g2": "video/3gpp2", "wmv": "video/x-ms-wmv",
	"flv": "video/x-flv", "f4v": "video/x-f4v", "ts": "video/mp2t", "m2ts": "video/mp2t",
	"m4s": "video/iso.segment", "m3u8": "application/vnd.apple.mpegurl",
	"mpd": "application/dash+xml", "ttml": "application/ttml+xml",

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
	"tsv": "text/tab-separated-values; charset=utf-8", "log": "text/plain; charset=utf-8",
	"mjs": "text/javascript; charset=utf-8", "wasm": "application/wasm", "map": "application/json",
	"webmanifest": "application/manifest+json", "jsonld": "application/ld+json",
	"geojson": "application/geo+json", "gpx": "application/gpx+xml",
	"kml": "application/vnd.google-earth.kml+xml", "kmz": "application/vnd.google-earth.kmz",
	"rss": "application/rss+xml", "atom": "application/atom+xml", "yaml": "application/yaml",
	"yml": "application/yaml", "toml": "application/toml", "sql": "application/sql",
	"eml": "message/rfc822", "msg": "application/vnd.ms-outlook",

	"zip": "application/zip", "7z": "application/x-7z-compressed", "rar": "application/vnd.rar",
	"tar": "application/x-tar", "gz": "application/gzip", "tgz": "application/gzip",
	"bz2": "application/x-bzip2", "xz": "application/x-xz", "zst": "application/zstd",
	"apk": "application/vnd.android.package-archive", "jar": "application/java-archive",
	"pkpass": "application/vnd.apple.pkpass", "usdz": "model/vnd.usdz+zip",
	"glb": "model/gltf-binary", "gltf": "model/gltf+json", "obj": "model/obj", "stl": "model/stl",
	"eps": "application/postscript", "ps": "application/postscript", "ai": "application/postscript",
	"pages": "application/vnd.apple.pages", "numbers": "application/vnd.apple.numbers",
	"eot": "application/vnd.ms-fontobject", "ttc": "font/collection",
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
