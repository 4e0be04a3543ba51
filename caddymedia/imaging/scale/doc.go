// Package scale makes smaller copies of decoded images.
//
// A [Box] is the configured size of a copy. [Box.View] computes from it which part of an image is
// shown at which size. A [Source] holds a decoded image and makes a copy for each view.
//
// The filter is Lanczos3, widened by the factor of the reduction, so that fine patterns vanish
// instead of turning into coarse ones. Reductions by four and more first halve the image, until
// the filter has a factor of two to four left. The halved images are shared by all copies of a
// source.
//
// Planes of luma and chroma are filtered as they are, without a conversion to RGB. Colours with
// alpha are weighted by it, so that the colour of an invisible pixel has no effect.
package scale
