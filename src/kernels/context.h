// What every op needs beside its operands. One a process, made by cli, handed down by the model.
//
// Rules of all ops in this room:
//  - An op is called from one thread at a time; it spreads its rows or columns over `pool`.
//  - Its result does not depend on thread_count, nor on how rows are cut into calls (promise P2),
//  nor on
//    the ISA among portable, avx2 and avx512. kRef sums in double and so differs in the last place.
//  - Shapes are the caller's promise: a wrong one is a FATHOM_CHECK, not a Status.
//  - Activations are f32 arrays. `round_bf16` in an op's args (from Policy) makes its output
//    bf16-representable, with one rounding at the op's end unless it says otherwise.
//  - Outputs must not overlap inputs unless the op says so.
#pragma once

#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "kernels/workspace.h"

namespace fathom::kernels {

struct Context {
  ThreadPool& pool;
  Workspace& workspace;
  Isa isa = Isa::kPortable;
};

}  // namespace fathom::kernels
