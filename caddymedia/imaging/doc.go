// Package imaging decides whether the content of an upload is what its name says, and whether a picture is small
// enough to be worked on; and it takes the metadata out of pictures.
//
// [CheckImage] looks at the structure of a picture without decoding a pixel: the decoder of that one format reads
// the header, and a walk over the blocks proves that the file is whole. Decoders are chosen by extension, never by
// image.Decode, because any package of the process may register a decoder there. SVG pictures are parsed as XML and
// checked against allow-lists; they are never rewritten. [CheckFile] is for everything else: it refuses content
// that contradicts the extension.
//
// The same walk notes in the [Info] what an encoder must know, and which parts of the file make the picture:
// [Info.Stripped] gives those alone, copied and not encoded again. Lists of what remains decide, not of what goes,
// since a block that nobody knows may hold anything.
//
// Neither trusts what it reads: work and memory are bounded whatever the bytes say.
package imaging
