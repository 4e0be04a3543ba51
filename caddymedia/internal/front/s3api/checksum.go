package s3api

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
)

// The kinds of the checksum of a multipart upload: that of its bytes, and that of the checksums of
// its parts, https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html.
const (
	fullObject = "FULL_OBJECT"
	composite  = "COMPOSITE"
)

// checkCompletion compares a completion with the parts that it names: their checksums, and the size
// and the checksum of the whole object. The bytes are not read again.
func checkCompletion(header http.Header, sent []completedPart, parts []*resumable.Upload) *Error {
	var size int64
	for i, part := range parts {
		size += part.Length
		for algorithm, sum := range sent[i].sums() {
			known := part.Sums[algorithm]
			switch {
			case sum == "" || sum == known:
			case known == "":
				return unknownSum(algorithm)
			default:
				return errorOf(badDigest, "the part "+strconv.Itoa(part.Number)+" has another checksum "+algorithm)
			}
		}
	}
	if text := one(header, "X-Amz-Mp-Object-Size"); text != "" {
		wanted, err := strconv.ParseUint(text, 10, 63)
		switch {
		case err != nil:
			return errorOf(invalidArgument, "the header x-amz-mp-object-size is a number")
		case int64(wanted) != size:
			return errorOf(invalidRequest, "the parts have another size together than x-amz-mp-object-size")
		}
	}
	for algorithm := range checksums {
		if sum := one(header, http.CanonicalHeaderKey(checksumPrefix+algorithm)); sum != "" {
			if failed := checkObject(algorithm, sum, one(header, "X-Amz-Checksum-Type"), parts); failed != nil {
				return failed
			}
		}
	}
	return nil
}

func unknownSum(algorithm string) *Error {
	return errorOf(invalidRequest, "a part was sent without the checksum "+algorithm+
		": begin the upload with x-amz-checksum-algorithm, or complete it without this checksum")
}

// checkObject compares the checksum of a whole object with those of its parts.
func checkObject(algorithm, sum, kind string, parts []*resumable.Upload) *Error {
	sums := make([][]byte, len(parts))
	for i, part := range parts {
		raw, err := base64.StdEncoding.DecodeString(part.Sums[algorithm])
		if err != nil || len(raw) == 0 {
			return unknownSum(algorithm)
		}
		sums[i] = raw
	}
	whole, isCRC := combined(algorithm, sums, parts)
	switch kind {
	case fullObject:
		if !isCRC {
			return errorOf(invalidRequest, "x-amz-checksum-type FULL_OBJECT is for checksums of the kind CRC")
		}
	case composite:
		whole = ""
	case "":
	default:
		return errorOf(invalidArgument, "x-amz-checksum-type is FULL_OBJECT or COMPOSITE")
	}
	joined := checksums[algorithm]()
	for _, raw := range sums {
		_, _ = joined.Write(raw) // a hash never fails
	}
	ofParts := base64.StdEncoding.EncodeToString(joined.Sum(nil))
	isOfParts := kind != fullObject && strings.TrimSuffix(sum, "-"+strconv.Itoa(len(parts))) == ofParts
	if !isOfParts && (whole == "" || sum != whole) {
		return errorOf(badDigest, "the object is not that of x-amz-checksum-"+algorithm)
	}
	return nil
}

// polynomials are those of the kind CRC, reflected.
var polynomials = map[string]uint64{"crc32": crc32.IEEE, "crc32c": crc32.Castagnoli, "crc64nvme": nvme}

// combined returns the checksum of the bytes of all parts; false if it cannot be calculated from
// theirs.
func combined(algorithm string, sums [][]byte, parts []*resumable.Upload) (sum string, isCRC bool) {
	polynomial, isCRC := polynomials[algorithm]
	if !isCRC {
		return "", false
	}
	size := len(sums[0])
	c := crc{polynomial, 1 << (8*size - 1)}
	var whole uint64
	for i, raw := range sums {
		part := binary.BigEndian.Uint64(append(make([]byte, 8-size), raw...))
		whole = c.multiply(c.power(8*uint64(parts[i].Length)), whole) ^ part
	}
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, whole)[8-size:]), true
}

// crc calculates with polynomials modulo that of a CRC, as crc32_combine of zlib does. Bits are
// reflected: one is the bit of 1, and the next lower bit that of x.
type crc struct{ polynomial, one uint64 }

func (c crc) multiply(a, b uint64) (product uint64) {
	for bit := c.one; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ c.polynomial
		} else {
			b >>= 1
		}
	}
	return product
}

// power returns x to the power of n.
func (c crc) power(n uint64) uint64 {
	product, square := c.one, c.one>>1
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			product = c.multiply(product, square)
		}
		square = c.multiply(square, square)
	}
	return product
}
