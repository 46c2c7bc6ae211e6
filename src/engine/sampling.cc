#include "engine/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace fathom {

namespace {

// Tokens less likely than e^-50 of the best one carry less than 1e-16 of the probability of any
// vocabulary that fits memory: below the resolution of the draw.
constexpr double kLogWeightMin = -50.0;

// Four floats that any x86-64 handles at once; other machines' compilers split them.
using Floats = float __attribute__((vector_size(16)));

struct Peak {
  float logit = -INFINITY;  // the largest
  TokenId token = 0;        // the first that has it
  bool all_finite = true;
};

// One pass over the vocabulary, in blocks, so that the place of the peak is looked for in one only.
Peak find_peak(std::span<const float> logits) {
  constexpr size_t kLanes = 16, kBlock = 1024;
  Peak peak;
  size_t peak_block = 0;
  float differences = 0;  // x - x is 0 for a finite x and NaN for the rest
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, logits.size());
    std::array<Floats, kLanes / 4> best, sum{};
    best.fill(Floats{} - INFINITY);
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes)
      for (size_t lane = 0; lane < best.size(); ++lane) {
        Floats x;
        std::memcpy(&x, &logits[i + 4 * lane], sizeof x);
        best[lane] = x > best[lane] ? x : best[lane];
        sum[lane] += x - x;
      }
    float block_best = -INFINITY;
    for (; i < end; ++i) {
      block_best = std::max(block_best, logits[i]);
      differences += logits[i] - logits[i];
    }
    for (size_t lane = 0; lane < kLanes; ++lane) {
      block_best = std::max(block_best, best[lane / 4][lane % 4]);
      differences += sum[lane / 4][lane % 4];
    }
    if (block_best <= peak.logit) continue;
    peak.logit = block_best;
    peak_block = begin;
  }
  peak.all_finite = differences == 0;
  const auto from = logits.begin() + static_cast<int64_t>(peak_block);
  peak.token = static_cast<TokenId>(std::find(from, logits.end(), peak.logit) - logits.begin());
  return peak;
}

bool changes_logits(const SamplingParams& params) {
  return !params.logit_bias.empty() || params.frequency_penalty != 0 ||
         params.presence_penalty != 0 || params.repetition_penalty != 1;
}

// More likely first; equal ones by id.
bool comes_first(const TokenLogprob& a, const TokenLogprob& b) {
  return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
}

}  // namespace

double counter_uniform(uint64_t seed, uint64_t purpose, uint64_t position) {
  // splitmix64's finaliser over the three words, one after another.
  auto mix = [](uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  };
  const uint64_t bits = mix(mix(mix(seed) ^ purpose) ^ position);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)) {}

bool Sampler::is_protected(TokenId token) const {
  const auto& tokens = options_.protected_tokens;
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void Sampler::apply_bias(std::span<float> logits, const SamplingContext& context) {
  if (!context.is_answer_text) return;
  for (const LogitBias& entry : options_.params.logit_bias)
    if (!is_protected(entry.token)) logits[static_cast<size_t>(entry.token)] += entry.bias;
}

void Sampler::apply_penalties(std::span<float> logits, const SamplingContext& context) {
  const SamplingParams& params = options_.params;
  if (params.repetition_penalty != 1.0 && params.repeat_last_n != 0) {
    std::unordered_map<TokenId, bool> seen;
    int64_t left = params.repeat_last_n < 0 ? INT64_MAX : params.repeat_last_n;
    for (auto part : {context.generated, context.prompt})
      for (auto it = part.rbegin(); it != part.rend() && left > 0; ++it, --left) {
        if (is_protected(*it) || !seen.emplace(*it, true).second) continue;
        float& logit = logits[static_cast<size_t>(*it)];
        const double factor = logit > 0 ? 1 / params.repetition_penalty : params.repetition_penalty;
        logit = static_cast<float>(logit * factor);
      }
  }
  if (params.frequency_penalty == 0 && params.presence_penalty == 0) return;
  std::unordered_map<TokenId, int64_t> count;
  for (TokenId token : context.generated) ++count[token];
  for (const auto& [token, times] : count)
    if (!is_protected(token))
      logits[static_cast<size_t>(token)] -= static_cast<float>(
          static_cast<double>(times) * params.frequency_penalty + params.presence_penalty);
}

void Sampler::add_logprobs(std::span<const float> logits, SampledToken* out) const {
  const double max_logit = find_peak(logits).logit;
  double sum = 0;
  for (float logit : logits) {
    const double log_weight = logit - max_logit;
    if (log_weight > kLogWeightMin) sum += std::exp(log_weight);
  }
  const double log_sum = std::log(sum) + max_logit;
  auto logprob_of = [&](TokenId token) {
    return std::min(0.0, logits[static_cast<size_t>(token)] - log_sum);
  };
  out->logprob = logprob_of(out->token);
  const size_t count = std::min(logits.size(), static_cast<size_t>(options_.top_logprobs));
  for (TokenId token = 0; count > 0 && token < static_cast<TokenId>(logits.size()); ++token) {
    const TokenLogprob entry{token, logprob_of(token)};
    if (out->top.size() == count) {
      if (!comes_first(entry, out->top.back())) continue;
      out->top.pop_back();
    }
    out->top.insert(std::upper_bound(out->top.begin(), out->top.end(), entry, comes_first), entry);
  }
}

Distribution Sampler::weigh(std::span<const float> logits, float max_logit) const {
  const SamplingParams& params = options_.params;
  std::vector<WeightedToken> tokens;
  tokens.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_weight = (static_cast<double>(logits[i]) - max_logit) / params.temperature;
    if (log_weight > kLogWeightMin)
      tokens.push_back({std::exp(log_weight), static_cast<TokenId>(i)});
  }
  const auto less_likely = [](const WeightedToken& a, const WeightedToken& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
  };
  const auto more_likely = [&](const WeightedToken& a, const WeightedToken& b) {
    return less_likely(b, a);
  };
  if (params.top_k > 0 && params.top_k < std::ssize(tokens)) {
    std::nth_element(tokens.begin(), tokens.begin() + params.top_k, tokens.end(), more_likely);
    tokens.resize(static_cast<size_t>(params.top_k));
  }
  if (params.top_p < 1) {
    double total = 0;
    for (const WeightedToken& t : tokens) total += t.weight;
    // A heap, because the kept head is short and the tail need not be sorted.
    std::make_heap(tokens.begin(), tokens.end(), less_likely);
    auto heap_end = tokens.end();
    for (double kept = 0; heap_end != tokens.begin() && kept < params.top_p * total;) {
      std::pop_heap(tokens.begin(), heap_end, less_likely);
      kept += (--heap_end)->weight;
    }
    tokens.erase(tokens.begin(), heap_end);
  }
  std::erase_if(tokens, [&](const WeightedToken& t) { return t.weight < params.min_p; });
  const auto by_id = [](const WeightedToken& a, const WeightedToken& b) {
    return a.token < b.token;
  };
  if (!std::is_sorted(tokens.begin(), tokens.end(), by_id))
    std::sort(tokens.begin(), tokens.end(), by_id);
  return Distribution(std::move(tokens));
}

Result<Distribution> Sampler::warp(std::span<float> logits, const SamplingContext& context) {
  Peak peak = find_peak(logits);
  if (!peak.all_finite)
    return error(Code::kInternal, "the model gave a logit that is not finite (answer token {})",
                 context.generated.size());
  const SamplingParams& params = options_.params;
  if (changes_logits(params)) {
    apply_bias(logits, context);
    apply_penalties(logits, context);
    peak = find_peak(logits);
  }
  const bool takes_peak = params.temperature <= 0 || params.top_k == 1 || params.top_p <= 0;
  return takes_peak ? Distribution::certain(peak.token) : weigh(logits, peak.logit);
}

double Sampler::uniform(DrawPurpose purpose, const SamplingContext& context) const {
  return counter_uniform(options_.params.seed, static_cast<uint64_t>(purpose),
                         context.generated.size());
}

template <typename Choose>
Result<SampledToken> Sampler::sample(std::span<float> logits, const SamplingContext& context,
                                     const Choose& choose) {
  std::vector<float> raw;
  if (options_.wants_logprobs) raw.assign(logits.begin(), logits.end());
  FATHOM_ASSIGN(const Distribution distribution, warp(logits, context));
  SampledToken out;
  out.token = choose(distribution);
  if (options_.wants_logprobs) add_logprobs(raw, &out);
  return out;
}

Result<SampledToken> Sampler::pick(std::span<float> logits, const SamplingContext& context) {
  return sample(logits, context, [&](const Distribution& distribution) {
    return distribution.draw(uniform(DrawPurpose::kToken, context));
  });
}

Result<Draft> Sampler::draft(std::span<float> logits, const SamplingContext& context) {
  FATHOM_ASSIGN(Distribution distribution, warp(logits, context));
  const TokenId token = distribution.draw(uniform(DrawPurpose::kDraft, context));
  return Draft{token, std::move(distribution)};
}

Result<SampledToken> Sampler::judge(const Draft& draft, std::span<float> logits,
                                    const SamplingContext& context) {
  return sample(logits, context, [&](const Distribution& target) {
    const double drafted = draft.distribution.probability(draft.token);
    const double wanted = target.probability(draft.token);
    if (uniform(DrawPurpose::kAccept, context) * drafted < wanted) return draft.token;
    return residual(target, draft.distribution).draw(uniform(DrawPurpose::kResidual, context));
  });
}

}  // namespace fathom
