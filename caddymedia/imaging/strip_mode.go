package imaging

import "fmt"

// StripMode says which metadata [Info.Stripped] removes.
type StripMode string

const (
	// StripOff removes nothing. The default.
	StripOff StripMode = "off"
	// StripOn removes everything that is not needed to show the image.
	StripOn StripMode = "on"
	// StripLocation removes where and with which device the image was made, and other images and
	// films in the file: GPS, place names, maker notes, serial numbers, thumbnails and data behind
	// the image. Date, author, copyright and descriptions remain. Private fields do not, because
	// they may hold anything. Nor do credentials (C2PA), unless nothing else is removed.
	StripLocation StripMode = "location"
)

// ParseStripMode parses a configured mode. Empty means [StripOff].
func ParseStripMode(s string) (StripMode, error) {
	switch mode := StripMode(s); mode {
	case "":
		return StripOff, nil
	case StripOff, StripOn, StripLocation:
		return mode, nil
	}
	return "", fmt.Errorf("unknown mode %q: it is on, off or location", s)
}
