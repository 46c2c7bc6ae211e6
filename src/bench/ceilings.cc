#include "bench/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include "bench/timing.h"
#include "kernels/isa.h"

#if defined(__x86_64__)
// GCC 12 takes the undefined operand inside its own AVX-512 intrinsics for a mistake of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace fathom::bench {
namespace {

constexpr int kChains = 24;  // independent sums: more than latency times width of any CPU we know
constexpr int64_t kRounds = 20000;
constexpr int kRepeats = 40;
constexpr int64_t kReadBytes = int64_t{512} << 20;
constexpr int64_t kReadChunk = 1 << 20;
constexpr int kReadRepeats = 8;

// Each does kRounds · kChains vector instructions; the operations of one are in `per_instruction`.
struct Peak {
  void (*run)();
  double per_instruction = 0;
};

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bf16"))) void run_bf16() {
  __m512 sum[kChains] = {};
  for (__m512& s : sum) asm volatile("" : "+v"(s));  // or the chains would be found equal
  __m512i x = _mm512_set1_epi32(0x3f803f80);
  for (int64_t i = 0; i < kRounds; ++i) {
    asm volatile("" : "+v"(x));  // or the products would be computed once
#pragma GCC unroll 24
    for (__m512& s : sum) s = _mm512_dpbf16_ps(s, (__m512bh)x, (__m512bh)x);
  }
  for (__m512& s : sum) asm volatile("" : "+v"(s));
}

__attribute__((target("avx512f,avx512vnni"))) void run_int8() {
  __m512i sum[kChains] = {};
  for (__m512i& s : sum) asm volatile("" : "+v"(s));
  __m512i x = _mm512_set1_epi32(0x01010101);
  for (int64_t i = 0; i < kRounds; ++i) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 24
    for (__m512i& s : sum) s = _mm512_dpbusd_epi32(s, x, x);
  }
  for (__m512i& s : sum) asm volatile("" : "+v"(s));
}

__attribute__((target("avx512f"))) void run_f32_avx512() {
  __m512 sum[kChains] = {};
  for (__m512& s : sum) asm volatile("" : "+v"(s));  // or the chains would be found equal
  __m512 x = _mm512_set1_ps(1);
  for (int64_t i = 0; i < kRounds; ++i) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 24
    for (__m512& s : sum) s = _mm512_fmadd_ps(x, x, s);
  }
  for (__m512& s : sum) asm volatile("" : "+v"(s));
}

__attribute__((target("avx2,fma"))) void run_f32_avx2() {
  __m256 sum[12] = {};  // twice 12 of 24: there are 16 registers
  for (__m256& s : sum) asm volatile("" : "+x"(s));
  __m256 x = _mm256_set1_ps(1);
  for (int64_t i = 0; i < 2 * kRounds; ++i) {
    asm volatile("" : "+x"(x));
#pragma GCC unroll 12
    for (__m256& s : sum) s = _mm256_fmadd_ps(x, x, s);
  }
  for (__m256& s : sum) asm volatile("" : "+x"(s));
}
#endif

void run_f32_portable() {
  volatile float x = 1;
  float sum[kChains] = {};
  for (int64_t i = 0; i < kRounds; ++i)
    for (float& s : sum) s += x * x;
  volatile float kept = std::accumulate(sum, sum + kChains, 0.0F);
  (void)kept;
}

bool has_isa(kernels::Isa isa) {
  const auto isas = kernels::available_isas();
  return std::find(isas.begin(), isas.end(), isa) != isas.end();
}

Peak f32_peak() {
#if defined(__x86_64__)
  if (has_isa(kernels::Isa::kAvx512)) return {run_f32_avx512, 32};
  if (has_isa(kernels::Isa::kAvx2)) return {run_f32_avx2, 16};
#endif
  return {run_f32_portable, 2};
}

// 10^9 operations a second of all threads together.
double rate(ThreadPool& pool, const Peak& peak) {
  const int threads = pool.thread_count();
  const double seconds = best_seconds(
      kRepeats, [&] { pool.parallel_for(threads, [&](int64_t, int) { peak.run(); }); });
  return peak.per_instruction * kChains * kRounds * threads / seconds * 1e-9;
}

uint64_t sum_of(const uint64_t* words, int64_t count) {
  uint64_t sums[8] = {};
  for (int64_t i = 0; i < count; i += 8) {
    __builtin_prefetch(words + i + 512);
    for (int64_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  return std::accumulate(sums, sums + 8, uint64_t{0});
}

double read_rate(ThreadPool& pool) {
  const std::unique_ptr<uint64_t[]> memory(new uint64_t[kReadBytes / 8]);
  std::memset(memory.get(), 1, kReadBytes);
  const double seconds = best_seconds(kReadRepeats, [&] {
    pool.parallel_for(kReadBytes / kReadChunk, [&](int64_t chunk, int) {
      volatile uint64_t sum = sum_of(memory.get() + chunk * kReadChunk / 8, kReadChunk / 8);
      (void)sum;
    });
  });
  return static_cast<double>(kReadBytes) / seconds * 1e-9;
}

}  // namespace

Ceilings measure_ceilings(ThreadPool& pool) {
  Ceilings ceilings{.threads = pool.thread_count()};
  ceilings.read_gb_s = read_rate(pool);
  ceilings.f32_gflop_s = rate(pool, f32_peak());
  ceilings.bf16_gflop_s = ceilings.f32_gflop_s;
#if defined(__x86_64__)
  if (kernels::cpu_has_avx512_bf16()) ceilings.bf16_gflop_s = rate(pool, {run_bf16, 64});
  if (kernels::cpu_has_avx512_vnni()) ceilings.int8_gop_s = rate(pool, {run_int8, 128});
#endif
  return ceilings;
}

std::vector<Figure> ceiling_figures(const Ceilings& ceilings) {
  const auto figure = [&](const char* what, double value, const char* unit) {
    return rate_figure(fmt::format("ceiling {}, {} threads", what, ceilings.threads), value, unit,
                       0, 0);
  };
  return {figure("memory read", ceilings.read_gb_s, "GB/s"),
          figure("f32", ceilings.f32_gflop_s, "GFLOP/s"),
          figure("bf16", ceilings.bf16_gflop_s, "GFLOP/s"),
          figure("int8", ceilings.int8_gop_s, "GOP/s")};
}

}  // namespace fathom::bench
