// Prefill, taps, decode and greedy: ids in, logits and taps out.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/deepseek_v41/state.h"
#include "verify/cases.h"
#include "verify/recorder.h"

namespace fathom::verify {
namespace {

// Pieces that a prompt is cut into for the sharpest comparison; 0 is whole.
constexpr std::array<int64_t, 3> kSmoothChunks = {0, 7, 1};

std::string run_name(const std::string& policy, int64_t chunk) {
  return chunk == 0 ? policy : fmt::format("{}, chunks of {}", policy, chunk);
}

// The last row alone, in one piece: decoder layers leave out what it can't see.
Status run_trimmed(const Subject& subject, GoldenCase& golden, std::span<const TokenId> ids,
                   const Arithmetic& arithmetic, Report* report) {
  const std::string name = std::string("logits") + arithmetic.suffix;
  const auto count = static_cast<int64_t>(ids.size());
  FATHOM_ASSIGN(Runner runner, Runner::create(subject, golden, arithmetic.policy, nullptr, count));
  FATHOM_ASSIGN(const std::vector<float> logits, runner.run(ids, 0, count - 1));
  FATHOM_ASSIGN(const GoldenTensor* want, golden.take(name));
  Tally tally(name, arithmetic.logits_limit);
  if (want->rows != count)
    tally.fail(fmt::format("{}: {} rows for {} ids", name, want->rows, count));
  else
    tally.add(logits, std::span(want->floats).last(static_cast<size_t>(want->cols)), want->cols,
              want->dtype, name, count - 1);
  report->add(golden.name(), std::string(arithmetic.policy) + ", trimmed", {tally});
  return Status::ok();
}

bool has_taps(const GoldenCase& golden) {
  const auto names = golden.names();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name != "ids" && !name.starts_with("logits");
  });
}

Status run_fed_prefill(const Subject& subject, GoldenCase& golden, std::span<const TokenId> ids,
                       Report* report) {
  FATHOM_ASSIGN(const v41::Config config, config_of(subject, golden));
  Recorder recorder(config.text, &golden, feeding(golden));
  const std::string policy = policy_of(golden);
  FATHOM_ASSIGN(Runner runner, Runner::create(subject, golden, policy, &recorder,
                                              static_cast<int64_t>(ids.size())));
  FATHOM_TRY(runner.run(ids).status());
  report->add(golden.name(), policy + kEachStep, recorder.finish());
  return Status::ok();
}

// What a decode leaves in the caches, against the golden's last state.
void compare_state(GoldenCase& golden, const v41::TextConfig& config, v41::State& state,
                   std::vector<Tally>* tallies) {
  const auto add = [&](const std::string& name, auto&& fill) {
    if (!golden.has(name)) return;
    Tally tally(pool_name(name), Limit::kPrinted);
    const Result<const GoldenTensor*> want = golden.take(name);
    if (!want)
      tally.fail(want.status().message());
    else
      fill(**want, &tally);
    tallies->push_back(std::move(tally));
  };
  const auto rows_of = [](const CacheRows& rows) {
    return [&rows](const GoldenTensor& want, Tally* tally) {
      std::vector<float> got(static_cast<size_t>(rows.count() * rows.view().cols));
      for (int64_t r = 0; r < rows.count(); ++r)
        rows.read(r, std::span(got).subspan(static_cast<size_t>(r * rows.view().cols),
                                            static_cast<size_t>(rows.view().cols)));
      tally->add(got, want.floats, want.cols, want.dtype, want.name);
    };
  };
  const auto newest = [](const v41::GroupTail& tail, int64_t count) {
    return [&tail, count](const GoldenTensor& want, Tally* tally) {
      const MatrixView<const float> rows = tail.newest(count);
      tally->add({rows.data, static_cast<size_t>(rows.rows * rows.cols)}, want.floats, want.cols,
                 want.dtype, want.name);
    };
  };
  for (int32_t l = 0; l < config.num_hidden_layers; ++l) {
    const std::string place = fmt::format("state.layers.{}.", l);
    add(place + "window_ring", [&](const GoldenTensor& want, Tally* tally) {
      std::vector<float> row(static_cast<size_t>(want.cols));
      const int64_t end = state.token_count();
      for (int64_t p = std::max<int64_t>(0, end - want.rows); p < end; ++p) {
        state.window(l).read(p, row);
        const auto slot = static_cast<size_t>(p % want.rows * want.cols);
        tally->add(row, std::span(want.floats).subspan(slot, row.size()), want.cols, want.dtype,
                   want.name, p % want.rows);
      }
    });
    if (!v41::layer_role(config, LayerId{l}).is_kv_source) continue;
    const v41::SourceState& source = state.source(l);
    add(place + "compressed_kv", rows_of(source.compressed_kv));
    add(place + "index_k", rows_of(source.index_k));
    const int64_t pending = state.token_count() % source.ratio;
    add(place + "pending_k", newest(source.k, pending));
    add(place + "pending_g", newest(source.g, pending));
  }
}

// Prefill of the first `prefill` ids, then single steps: the last prefill row and one a step. The
// prefill is trimmed, as a server's.
Result<std::vector<float>> prefill_and_steps(Runner& runner, std::span<const TokenId> ids,
                                             int64_t prefill, int64_t chunk, Recorder* recorder) {
  if (recorder != nullptr) recorder->set_on(false);
  const auto split = static_cast<size_t>(prefill);
  FATHOM_ASSIGN(std::vector<float> rows, runner.run(ids.first(split), chunk, prefill - 1));
  if (recorder != nullptr) recorder->set_on(true);
  FATHOM_ASSIGN(const std::vector<float> steps, runner.run(ids.subspan(split), 1, prefill - 1));
  rows.insert(rows.end(), steps.begin(), steps.end());
  return rows;
}

}  // namespace

std::string policy_of(const GoldenCase& golden) {
  const std::string& arithmetic = golden.arithmetic();
  return arithmetic == "smooth" || arithmetic == "f32" ? arithmetic : "reference";
}

RecorderOptions feeding(const GoldenCase& golden) {
  return {.feeds = true,
          .is_smooth = golden.arithmetic() == "smooth",
          .is_o_judged = golden.arithmetic() != "official"};
}

Result<int64_t> index_integer(const GoldenCase& golden, const Json& entry, const char* field) {
  if (!entry.is_object() || !entry.contains(field) || !entry[field].is_number_integer())
    return error(Code::kDataLoss, "case {}: index.json needs an integer {}", golden.name(), field);
  return entry[field].get<int64_t>();
}

Tally compare_tensor(GoldenCase& golden, const std::string& name, const std::string& title,
                     Limit limit, std::span<const float> got) {
  Tally tally(title, limit);
  const Result<const GoldenTensor*> want = golden.take(name);
  if (!want)
    tally.fail(want.status().message());
  else
    tally.add(got, (*want)->floats, (*want)->cols, (*want)->dtype, name);
  return tally;
}

TokenId best_token(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<Arithmetic> arithmetics(const GoldenCase& golden) {
  std::vector<Arithmetic> all = {
      {"_smooth", "smooth", Limit::kSmoothLogits},
      {"_f32", "f32", Limit::kPrinted},
      {"_unrounded_p", "reference", Limit::kPrinted},
  };
  // Official: only its probabilities differ from `reference`.
  Arithmetic own = {"", "reference", Limit::kPrinted};
  for (const Arithmetic& arithmetic : all)
    if ("_" + golden.arithmetic() == arithmetic.suffix)
      own = {"", arithmetic.policy, arithmetic.logits_limit};
  all.push_back(own);
  return all;
}

Status run_prefill_case(const Subject& subject, GoldenCase& golden, Report* report) {
  FATHOM_ASSIGN(const std::vector<TokenId> ids, golden.tokens("ids"));
  if (ids.empty()) return error(Code::kDataLoss, "case {}: no ids", golden.name());
  for (const Arithmetic& arithmetic : arithmetics(golden)) {
    const std::string name = std::string("logits") + arithmetic.suffix;
    if (!golden.has(name)) continue;
    const bool is_smooth = arithmetic.logits_limit == Limit::kSmoothLogits;
    for (const int64_t chunk : kSmoothChunks) {
      if (chunk != 0 && !is_smooth) continue;
      FATHOM_ASSIGN(Runner runner, Runner::create(subject, golden, arithmetic.policy, nullptr,
                                                  static_cast<int64_t>(ids.size())));
      FATHOM_ASSIGN(const std::vector<float> logits, runner.run(ids, chunk));
      report->add(golden.name(), run_name(arithmetic.policy, chunk),
                  {compare_tensor(golden, name, name, arithmetic.logits_limit, logits)});
    }
    if (is_smooth) FATHOM_TRY(run_trimmed(subject, golden, ids, arithmetic, report));
  }
  return has_taps(golden) ? run_fed_prefill(subject, golden, ids, report) : Status::ok();
}

Status run_decode_case(const Subject& subject, GoldenCase& golden, Report* report) {
  FATHOM_ASSIGN(const std::vector<TokenId> ids, golden.tokens("ids"));
  FATHOM_ASSIGN(const int64_t prefill, index_integer(golden, golden.entry(), "prefill"));
  if (prefill < 1 || prefill > static_cast<int64_t>(ids.size()))
    return error(Code::kDataLoss, "case {}: prefill of {} of {} ids", golden.name(), prefill,
                 ids.size());
  const auto count = static_cast<int64_t>(ids.size());
  for (const Arithmetic& arithmetic : arithmetics(golden)) {
    const std::string name = std::string("logits") + arithmetic.suffix;
    if (!golden.has(name)) continue;
    for (const int64_t chunk : kSmoothChunks) {
      if (chunk != 0 && arithmetic.logits_limit != Limit::kSmoothLogits) continue;
      FATHOM_ASSIGN(Runner runner,
                    Runner::create(subject, golden, arithmetic.policy, nullptr, count));
      FATHOM_ASSIGN(const std::vector<float> rows,
                    prefill_and_steps(runner, ids, prefill, chunk, nullptr));
      report->add(golden.name(), run_name(arithmetic.policy, chunk),
                  {compare_tensor(golden, name, name, arithmetic.logits_limit, rows)});
    }
  }
  FATHOM_ASSIGN(const v41::Config config, config_of(subject, golden));
  Recorder recorder(config.text, &golden, feeding(golden));
  FATHOM_ASSIGN(Runner runner,
                Runner::create(subject, golden, policy_of(golden), &recorder, count));
  FATHOM_TRY(prefill_and_steps(runner, ids, prefill, 0, &recorder).status());
  std::vector<Tally> tallies = recorder.finish();
  compare_state(golden, config.text, dynamic_cast<v41::State&>(runner.state()), &tallies);
  report->add(golden.name(), policy_of(golden) + kEachStep, std::move(tallies));
  return Status::ok();
}

Status run_greedy_case(const Subject& subject, GoldenCase& golden, Report* report) {
  FATHOM_ASSIGN(const std::vector<TokenId> prompt, golden.tokens("prompt"));
  FATHOM_ASSIGN(const std::vector<TokenId> tokens, golden.tokens("tokens"));
  std::vector<TokenId> ids = prompt;
  ids.insert(ids.end(), tokens.begin(), tokens.end() - (tokens.empty() ? 0 : 1));
  const Json margins = golden.entry().value("margin", Json::array());
  for (const char* policy : {"smooth", "f32", "reference"}) {
    if (policy == std::string("f32") && !golden.has("logits_f32")) continue;
    FATHOM_ASSIGN(Runner runner, Runner::create(subject, golden, policy, nullptr,
                                                static_cast<int64_t>(ids.size())));
    FATHOM_ASSIGN(const std::vector<float> rows,
                  prefill_and_steps(runner, ids, static_cast<int64_t>(prompt.size()), 0, nullptr));
    const auto vocab = static_cast<size_t>(runner.model().info().vocab_count);
    Tally clear("tokens with margin > 0.1", Limit::kEqual);
    Tally close("tokens with a smaller margin", Limit::kPrinted);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const TokenId own = best_token(std::span(rows).subspan(i * vocab, vocab));
      const bool is_clear =
          i >= margins.size() || !margins[i].is_number() || margins[i].get<double>() > kMarginMin;
      (is_clear ? clear : close)
          .add(std::span(&own, 1), std::span(&tokens[i], 1), 1, "tokens", static_cast<int64_t>(i));
    }
    report->add(golden.name(), policy, {clear, close});
    for (const Arithmetic& arithmetic : arithmetics(golden)) {
      const std::string name = std::string("logits") + arithmetic.suffix;
      if (golden.has(name) && arithmetic.policy == std::string(policy))
        report->add(golden.name(), policy,
                    {compare_tensor(golden, name, name, arithmetic.logits_limit, rows)});
    }
  }
  return Status::ok();
}

}  // namespace fathom::verify
