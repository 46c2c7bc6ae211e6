// The odd multipliers of an Engram layer's hash (spec §5.2): the checkpoint does not hold them, the
// official code draws them with NumPy, so this is NumPy's generator.
#pragma once

#include <cstdint>
#include <vector>

namespace fathom::v41 {

// One for each token of the longest n-gram; products with compressed ids stay below 2^63.
std::vector<int64_t> engram_multipliers(int32_t layer_id, int64_t ngram_max,
                                        int64_t compressed_vocab);

// numpy.random.default_rng(seed).integers(0, bound, count, int64) for bound > 2^32:
// SeedSequence, PCG64 (XSL-RR 128/64) and Lemire's bounded draw.
std::vector<int64_t> numpy_integers(uint32_t seed, uint64_t bound, int64_t count);

}  // namespace fathom::v41
