// From an op's checks to the code of one ISA. For the .cc files of this room only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/context.h"

// FATHOM_PICK(isa, function): the function of kernels/cpu in that ISA's namespace. Handle kRef
// first.
#if defined(__x86_64__)
#define FATHOM_PICK(isa, function)                             \
  ((isa) == ::fathom::kernels::Isa::kAvx512 ? avx512::function \
   : (isa) == ::fathom::kernels::Isa::kAvx2 ? avx2::function   \
                                            : portable::function)
#else
#define FATHOM_PICK(isa, function) (portable::function)
#endif

namespace fathom::kernels {

// Calls body(first, count) for pieces that cover [0, rows), on the pool if that is worth a fork.
// `row_cost` is about the number of values touched per row; results must not depend on the cut.
template <typename Body>
void for_row_ranges(const Context& context, int64_t rows, int64_t row_cost, const Body& body) {
  // 16384 values are some 3 µs of work, about what waking a worker costs.
  constexpr int64_t kPieceCostMin = 16384;
  const int64_t rows_min = std::max<int64_t>(1, kPieceCostMin / std::max<int64_t>(1, row_cost));
  const int64_t pieces_max = static_cast<int64_t>(context.pool.thread_count()) * 4;
  const int64_t pieces = std::clamp<int64_t>(rows / rows_min, 1, pieces_max);
  if (pieces == 1 || context.pool.thread_count() == 1) {
    if (rows > 0) body(int64_t{0}, rows);
    return;
  }
  context.pool.parallel_for(pieces, [&](int64_t piece, int) {
    const int64_t first = rows * piece / pieces;
    body(first, rows * (piece + 1) / pieces - first);
  });
}

}  // namespace fathom::kernels
