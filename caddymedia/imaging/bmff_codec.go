package imaging

// image returns the primary item.
func (l *itemList) image() (*item, error) {
	it := l.items[l.primary]
	if it == nil || len(merged(it.parts)) == 0 || it.width == 0 || it.height == 0 {
		return nil, errBMFF
	}
	return it, nil
}

// codec returns the format of the pixels of an item, or of all inputs of a derived one. It returns
// "" for an unknown one.
func (l *itemList) codec(it *item) Format {
	if it.judged {
		return it.format
	}
	it.judged = true // also ends a cycle
	switch it.kind {
	case "av01":
		it.format = AVIF
	case "hvc1":
		it.format = HEIC
	case "grid", "iden":
		it.format = l.common(it.inputs)
	}
	return it.format
}

// common returns the format that all of the items have, or "".
func (l *itemList) common(ids []uint32) Format {
	var found Format
	for i, id := range ids {
		input := l.items[id]
		if input == nil || len(input.parts) == 0 {
			return ""
		}
		format := l.codec(input)
		if i > 0 && format != found {
			return ""
		}
		found = format
	}
	return found
}
