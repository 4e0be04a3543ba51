// Package imaging checks uploaded content against its file name, checks the size of pictures, and
// removes their metadata.
//
// [CheckImage] validates the structure of a picture without decoding a pixel. The decoder of the
// format reads the header, and a walk over the blocks proves that the file is complete. Decoders
// are chosen by extension, never by image.Decode, because any package of the process may register a
// decoder there. SVG pictures are parsed as XML and checked against allow-lists; they are never
// rewritten. [CheckFile] is for all other files: it refuses content that contradicts the extension.
//
// The same walk records in the [Info] the properties that an encoder needs, and the parts of the
// file that make the picture. [Info.Stripped] returns only those parts, copied, not encoded again.
// Allow-lists select the parts to keep, because an unknown block may hold anything.
//
// Work and memory are bounded for all input.
package imaging
