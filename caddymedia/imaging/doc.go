// Package imaging checks uploaded content against its file name, checks the size of images, and
// removes their metadata.
//
// [CheckImage] validates the structure of an image without decoding pixels. The extension selects
// the format. The decoder of the format, or for newer formats the walk itself, reads the header. A
// walk over all blocks verifies that the file is complete. image.Decode is never used, because any
// package of the process may register a decoder there. For AVIF and HEIC there is no decoder. SVG
// images are parsed as XML and checked against allow-lists, but never changed. [CheckFile] is for
// all other files: it refuses content that contradicts the extension.
//
// The walk also records, in the [Info], the properties that an encoder needs and the position of
// each essential part. [Info.Stripped] copies only those parts, without encoding them again. They
// are selected by allow-lists, because an unknown block may contain anything.
//
// Time and memory are limited for all input.
package imaging
