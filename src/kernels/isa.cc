#include "kernels/isa.h"

#include <cstdlib>
#include <vector>

namespace fathom::kernels {
namespace {

bool cpu_has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool cpu_has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && cpu_has_avx2();
#else
  return false;
#endif
}

std::string available_names() {
  std::string names;
  for (Isa isa : available_isas()) {
    names += names.empty() ? "" : ", ";
    names += isa_name(isa);
  }
  return names;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kRef:
      return "ref";
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::span<const Isa> available_isas() {
  static const std::vector<Isa> isas = [] {
    std::vector<Isa> found = {Isa::kRef, Isa::kPortable};
    if (cpu_has_avx2()) found.push_back(Isa::kAvx2);
    if (cpu_has_avx512()) found.push_back(Isa::kAvx512);
    return found;
  }();
  return isas;
}

Result<Isa> choose_isa() {
  const char* forced = std::getenv("FATHOM_FORCE_ISA");
  return choose_isa(forced ? forced : "");
}

Result<Isa> choose_isa(std::string_view forced) {
  if (forced.empty()) return available_isas().back();
  for (Isa isa : available_isas()) {
    if (isa_name(isa) == forced) return isa;
  }
  const bool is_known = forced == "avx2" || forced == "avx512";
  return error(
      is_known ? Code::kUnsupported : Code::kInvalidArgument,
      "instruction set {} (--isa, FATHOM_FORCE_ISA): it {}; available here: {}. Leave it out for "
      "the best",
      forced, is_known ? "needs instructions that this CPU lacks" : "is none we know",
      available_names());
}

bool cpu_has_avx512_bf16() {
#if defined(__x86_64__)
  return cpu_has_avx512() && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

bool cpu_has_avx512_vnni() {
#if defined(__x86_64__)
  return cpu_has_avx512() && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

std::string describe_isa(Isa isa) {
  std::string text(isa_name(isa));
  if (isa != Isa::kAvx512) return text;
  std::string extras;
  if (cpu_has_avx512_bf16()) extras += "bf16";
  if (cpu_has_avx512_vnni()) extras += extras.empty() ? "vnni" : ", vnni";
  return extras.empty() ? text : text + " (" + extras + ")";
}

}  // namespace fathom::kernels
