package imaging

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
