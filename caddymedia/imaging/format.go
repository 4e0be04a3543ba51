package imaging

import (
	"maps"
	"slices"
)

// optional are the extensions of formats that a caller may accept in addition.
var optional = []string{"webp", "avif", "heic"}

// Extensions returns the extensions (lower case, no dot) of the formats that are always accepted as
// images.
func Extensions() []string {
	names := slices.Sorted(maps.Keys(formats))
	return slices.DeleteFunc(names, func(ext string) bool { return slices.Contains(optional, ext) })
}

// OptionalExtensions returns the extensions (lower case, no dot) of the other formats that
// [CheckImage] knows. A caller may accept them as well.
func OptionalExtensions() []string { return slices.Clone(optional) }

// HasVariant reports whether images of the format may have a WebP variant. A WebP needs none.
func (f Format) HasVariant() bool { return f == JPEG || f == PNG || f == GIF }

// article returns the name of the format with its article.
func (f Format) article() string {
	if f == AVIF {
		return "an " + string(f)
	}
	return "a " + string(f)
}
