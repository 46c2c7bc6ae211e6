// The orientation tag of an EXIF block, and turning a picture by it.
#pragma once

#include "io/picture/internal/codec.h"

namespace fathom::picture {

// `block` is a JPEG's APP1 payload, a PNG's eXIf chunk or a WebP's EXIF chunk: a TIFF file, in a
// JPEG always and elsewhere sometimes behind "Exif\0\0". 1 (upright) unless it has a valid tag.
int exif_orientation(Bytes block);

// Whether the orientation swaps width and height.
inline bool swaps_sides(int orientation) {
  return orientation >= 5;
}

// The picture as it is meant to be seen; `orientation` in [1, 8] (EXIF 2.3, tag 0x0112).
RgbImage apply_orientation(RgbImage image, int orientation);

}  // namespace fathom::picture
