// The orientation tag of an EXIF block, and turning a picture by it.
#pragma once

#include "io/picture/internal/codec.h"

namespace fathom::picture {

// `block` is the payload of a JPEG's APP1 segment. 1 (upright) unless it is EXIF with a valid tag.
int exif_orientation(Bytes block);

// Whether the orientation swaps width and height.
inline bool swaps_sides(int orientation) {
  return orientation >= 5;
}

// The picture as it is meant to be seen; `orientation` in [1, 8] (EXIF 2.3, tag 0x0112).
RgbImage apply_orientation(RgbImage image, int orientation);

}  // namespace fathom::picture
