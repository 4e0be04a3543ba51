package scale

// Memory returns about the most bytes that a source and the making of one copy need, without the
// image and the copy. Samples is the number of 8-bit samples of two pixels: 2 for grey, 3 to 6
// for planes (3 with the ratio 4:2:0), and 8 for pixels.
func Memory(width, height, samples int) int64 {
	const (
		weights = 72  // for a sample on a side: 8 weights, and the first sample
		sums    = 16  // for each channel of a column
		kept    = 240 // for a column: 30 rows of four channels of 16 bits
	)
	halves := int64(width) * int64(height) * int64(samples) / 2 / 3 // 1/4 + 1/16 + ...
	sides := int64(width) + int64(height)
	if samples == 8 {
		return halves + sides*(weights+4*sums+kept)
	}
	return halves + 2*sides*(weights+sums) // the planes of chroma have half the columns
}
