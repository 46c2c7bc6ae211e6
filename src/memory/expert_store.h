// How the forward pass gets the routed experts of a layer: it asks, gets pins, computes, drops
// them. Who is resident where (mapping, RAM slots, GPU slots) is decided behind this interface;
// what an expert computes is not known here. Called from the engine thread only.
//
//   auto pins = store.pin(layer, experts);            // leases all of them, starts the missing
//   reads for (int64_t i : pins.ready_first()) pins.wait(i) // hits now, misses as they land
//   ~ExpertPins                                       // leases returned, experts evictable again
//
// All experts of a step are pinned in one call, so that making room for one can't evict another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "tensor/view.h"

namespace fathom {

// The three matrices of one expert, named as the checkpoint names them. Valid while pinned.
struct ExpertWeights {
  WeightView w1;
  WeightView w3;
  WeightView w2;
};

// Leases on some experts of one layer. Movable; returns its leases when destroyed.
class ExpertPins {
 public:
  // What a store does for its pins. Indices are positions in the span given to pin().
  class Lease {
   public:
    virtual ~Lease() = default;
    virtual bool is_ready(int64_t index) const = 0;
    virtual Result<ExpertWeights> wait(int64_t index) = 0;
  };

  ExpertPins(std::vector<ExpertId> experts, std::unique_ptr<Lease> lease)
      : experts_(std::move(experts)), lease_(std::move(lease)) {}

  int64_t count() const { return static_cast<int64_t>(experts_.size()); }
  ExpertId expert(int64_t index) const { return experts_[static_cast<size_t>(index)]; }

  // Whether wait(index) would return without reading a disk.
  bool is_ready(int64_t index) const { return lease_->is_ready(index); }

  // Blocks until the expert's bytes are there and checked. The views are good until the pins die.
  // kDataLoss names layer, expert and tensor; the request fails, the expert stays absent.
  Result<ExpertWeights> wait(int64_t index) { return lease_->wait(index); }

  // Positions, those that are ready now first: the order in which to compute. The order of the
  // *sum* over experts must not follow it.
  std::vector<int64_t> ready_first() const;

 private:
  std::vector<ExpertId> experts_;
  std::unique_ptr<Lease> lease_;
};

// Why experts are asked for before they are needed; lower classes give way (design: tiering §5.3).
enum class PrefetchClass { kExact, kLookahead, kWarmUp };

class ExpertStore {
 public:
  virtual ~ExpertStore() = default;

  // `experts` distinct, each below the layer's expert count; the layer one that has experts.
  // kResourceExhausted when they cannot be held at the same time.
  virtual Result<ExpertPins> pin(LayerId layer, std::span<const ExpertId> experts) = 0;

  // A guess that these will be pinned soon. Never blocks, never fails, may do nothing.
  virtual void prefetch(LayerId layer, std::span<const ExpertId> experts, PrefetchClass why) = 0;
};

}  // namespace fathom
