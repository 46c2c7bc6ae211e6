// What this machine can do at best: read memory and multiply. Every other figure is a share of
// these.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "bench/figure.h"

namespace fathom::bench {

// Rates of one number of threads: the best of many short runs, so that what else the machine does
// counts as little as possible.
struct Ceilings {
  int threads = 1;
  double read_gb_s = 0;     // 512 MiB of memory, read once
  double f32_gflop_s = 0;   // fused multiply-add; an operation is a multiplication or an addition
  double bf16_gflop_s = 0;  // VDPBF16PS; without it the f32 rate
  double int8_gop_s = 0;    // VPDPBUSD; without it 0
};
Ceilings measure_ceilings(ThreadPool& pool);

std::vector<Figure> ceiling_figures(const Ceilings& ceilings);

}  // namespace fathom::bench
