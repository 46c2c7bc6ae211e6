// Which implementation of the ops runs: chosen once at start, carried in Context.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace fathom::kernels {

enum class Isa {
  kRef,       // plain loops with double sums; slow, the definition of right
  kPortable,  // any CPU
  kAvx2,      // AVX2 and FMA
  kAvx512,    // AVX-512 F, BW, DQ, VL; BF16 and VNNI where cpu_has_... says so
};

std::string_view isa_name(Isa isa);  // "ref", "portable", "avx2", "avx512"

// What this CPU and its operating system can run, ascending; always holds kRef and kPortable.
std::span<const Isa> available_isas();

// The best available, or the one that FATHOM_FORCE_ISA names (portable, avx2, avx512, ref).
// kInvalidArgument for an unknown name, kUnsupported for one that this CPU lacks; both say what is
// available. Reads the environment, so call it once at start.
Result<Isa> choose_isa();
Result<Isa> choose_isa(std::string_view forced);  // empty: the best

bool cpu_has_avx512_bf16();
bool cpu_has_avx512_vnni();

// "avx512 (bf16, vnni)": for --version and bench output.
std::string describe_isa(Isa isa);

}  // namespace fathom::kernels
