// DSpark: a draft pass behind some positions of a decode (spec §7).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/deepseek_v41/state.h"
#include "verify/cases.h"
#include "verify/recorder.h"

namespace fathom::verify {
namespace {

struct DraftPass {
  int64_t position = 0;  // p: committed up to here
  TokenId next = 0;      // y, the token of p + 1
  std::vector<double> margins;
  std::string prefix() const { return fmt::format("p{}.", position); }
};

struct DraftCase {
  std::vector<TokenId> ids;
  int64_t prefill = 0;
  std::vector<DraftPass> passes;
};

Result<DraftCase> read_case(GoldenCase& golden) {
  DraftCase out;
  FATHOM_ASSIGN(out.ids, golden.tokens("ids"));
  FATHOM_ASSIGN(out.prefill, index_integer(golden, golden.entry(), "prefill"));
  int64_t next_position = out.prefill;
  for (const Json& entry : golden.entry().value("passes", Json::array())) {
    DraftPass pass;
    FATHOM_ASSIGN(pass.position, index_integer(golden, entry, "position"));
    FATHOM_ASSIGN(const int64_t next, index_integer(golden, entry, "y"));
    pass.next = static_cast<TokenId>(next);
    for (const Json& margin : entry.value("margin", Json::array()))
      pass.margins.push_back(margin.is_number() ? margin.get<double>() : 0);
    if (pass.position < next_position || pass.position >= std::ssize(out.ids))
      return error(Code::kDataLoss, "case {}: a pass at {}, wanted ascending from {}, below {} ids",
                   golden.name(), pass.position, next_position, out.ids.size());
    next_position = pass.position + 1;
    out.passes.push_back(std::move(pass));
  }
  if (out.prefill < 1 || out.passes.empty())
    return error(Code::kDataLoss, "case {}: prefill of {}, {} passes", golden.name(), out.prefill,
                 out.passes.size());
  return out;
}

// Prefill, then single steps; `at_pass` after each step that has a draft pass, with its logits.
template <typename AtPass>
Status walk(Runner& runner, const DraftCase& c, const AtPass& at_pass) {
  const std::span<const TokenId> ids = c.ids;
  const auto split = static_cast<size_t>(c.prefill);
  FATHOM_TRY(runner.run(ids.first(split), 0, c.prefill - 1).status());
  auto pass = c.passes.begin();
  for (size_t p = split; pass != c.passes.end(); ++p) {
    FATHOM_ASSIGN(const std::vector<float> logits, runner.run(ids.subspan(p, 1), 0, c.prefill - 1));
    if (static_cast<int64_t>(p) == pass->position) FATHOM_TRY(at_pass(*pass++, logits));
  }
  return Status::ok();
}

// What a chain along the golden's own drafts gives.
struct Chain {
  std::vector<float> logits;      // [drafts, V]
  std::vector<float> confidence;  // [drafts], 0..1
};

Result<Chain> run_chain(Runner& runner, const DraftPass& pass, std::span<const TokenId> drafts) {
  Chain chain;
  const auto follow = [&](const DraftOffer& offer) -> std::optional<TokenId> {
    const size_t i = chain.confidence.size();
    chain.logits.insert(chain.logits.end(), offer.logits.begin(), offer.logits.end());
    chain.confidence.push_back(offer.confidence);
    return i < drafts.size() ? std::optional(drafts[i]) : std::nullopt;
  };
  FATHOM_TRY(runner.model().draft(runner.state(), pass.next, follow, nullptr));
  return chain;
}

// The greedy choice of each row, judged where the best two are clearly apart.
void compare_choices(const Chain& chain, std::span<const TokenId> drafts, const DraftPass& pass,
                     Tally* clear, Tally* close) {
  const size_t vocab = chain.logits.size() / std::max<size_t>(1, chain.confidence.size());
  for (size_t i = 0; i < chain.confidence.size() && i < drafts.size(); ++i) {
    const TokenId own = best_token(std::span(chain.logits).subspan(i * vocab, vocab));
    const bool is_clear = i >= pass.margins.size() || pass.margins[i] > kMarginMin;
    (is_clear ? clear : close)
        ->add(std::span(&own, 1), drafts.subspan(i, 1), 1, pass.prefix() + "draft.ids",
              static_cast<int64_t>(i));
  }
}

// The golden's confidences are before the sigmoid.
std::vector<float> before_sigmoid(std::span<const float> confidence) {
  std::vector<float> out;
  for (const float c : confidence) out.push_back(std::log(c / (1 - c)));
  return out;
}

Status run_end_to_end(const Subject& subject, GoldenCase& golden, const DraftCase& c,
                      const Arithmetic& arithmetic, Report* report) {
  FATHOM_ASSIGN(Runner runner,
                Runner::create(subject, golden, arithmetic.policy, nullptr, std::ssize(c.ids)));
  Tally clear("drafts with margin > 0.1",
              arithmetic.logits_limit == Limit::kSmoothLogits ? Limit::kEqual : Limit::kPrinted);
  Tally close("drafts with a smaller margin", Limit::kPrinted);
  std::vector<Tally> tallies;
  FATHOM_TRY(walk(runner, c, [&](const DraftPass& pass, std::span<const float> logits) -> Status {
    const auto name = [&](const char* tensor) {
      return pass.prefix() + tensor + std::string(arithmetic.suffix);
    };
    FATHOM_ASSIGN(std::vector<TokenId> drafts, golden.tokens(name("draft.ids")));
    if (!drafts.empty()) drafts.erase(drafts.begin());  // y
    FATHOM_ASSIGN(const Chain chain, run_chain(runner, pass, drafts));
    compare_choices(chain, drafts, pass, &clear, &close);
    tallies.push_back(compare_tensor(golden, name("draft.logits"), pool_name(name("draft.logits")),
                                     arithmetic.logits_limit, chain.logits));
    tallies.push_back(compare_tensor(golden, name("draft.confidence"),
                                     pool_name(name("draft.confidence")), arithmetic.logits_limit,
                                     before_sigmoid(chain.confidence)));
    if (golden.has(name("target_logits")))
      tallies.push_back(compare_tensor(golden, name("target_logits"),
                                       pool_name(name("target_logits")), arithmetic.logits_limit,
                                       logits));
    return Status::ok();
  }));
  tallies.push_back(std::move(clear));
  tallies.push_back(std::move(close));
  report->add(golden.name(), arithmetic.policy, std::move(tallies));
  return Status::ok();
}

// Feeds the prefill's M to the windows, where the golden has it; the recorder gets all else.
class DraftObserver : public Observer {
 public:
  DraftObserver(Recorder* recorder, const GoldenTensor* seeds)
      : recorder_(*recorder), seeds_(seeds) {}

  void set_seeding(bool is_seeding) { is_seeding_ = is_seeding; }

  void tap(const std::string& name, MatrixView<float> values) override {
    if (!is_seeding_) return recorder_.tap(name, values);
    if (name != "draft.main_hidden" || seeds_ == nullptr || seeds_->cols != values.cols) return;
    for (int64_t r = 0; r < values.rows; ++r)
      std::copy_n(seeds_->floats.data() + (seeds_->rows - values.rows + r) * values.cols,
                  values.cols, values.row(r).data());
  }
  void tap(const std::string& name, MatrixView<int32_t> values) override {
    if (!is_seeding_) recorder_.tap(name, values);
  }

 private:
  Recorder& recorder_;
  const GoldenTensor* seeds_;
  bool is_seeding_ = false;
};

// The stages' window rows from `first` on, made from the golden's own M.
Tally compare_windows(GoldenCase& golden, const v41::TextConfig& config, v41::State& state,
                      const DraftPass& pass, int64_t first, Limit limit) {
  Tally tally("mtp.window_ring, fed rows", limit);
  std::vector<float> row(static_cast<size_t>(config.head_dim));
  for (int64_t i = 0; i < config.num_nextn_predict_layers; ++i) {
    const std::string name = fmt::format("{}mtp.{}.window_ring", pass.prefix(), i);
    const Result<const GoldenTensor*> want = golden.take(name);
    if (!want || (*want)->cols != config.head_dim || (*want)->rows != config.sliding_window) {
      tally.fail(want ? name + ": not W rows of a window" : want.status().message());
      continue;
    }
    for (int64_t p = first; p <= pass.position; ++p) {
      const int64_t slot = p % (*want)->rows;
      state.window(static_cast<int32_t>(config.num_hidden_layers + i)).read(p, row);
      tally.add(
          row,
          std::span((*want)->floats).subspan(static_cast<size_t>(slot) * row.size(), row.size()),
          config.head_dim, (*want)->dtype, name, slot);
    }
  }
  return tally;
}

Status run_each_step_alone(const Subject& subject, GoldenCase& golden, const DraftCase& c,
                           Report* report) {
  constexpr const char* kSeeds = "prefill_main_hidden";
  FATHOM_ASSIGN(const v41::Config config, config_of(subject, golden));
  const RecorderOptions options = feeding(golden);
  const GoldenTensor* seeds = nullptr;
  if (golden.has(kSeeds)) {
    FATHOM_ASSIGN(seeds, golden.take(kSeeds));
  }
  Recorder recorder(config.text, &golden, options);
  DraftObserver observer(&recorder, seeds);
  FATHOM_ASSIGN(Runner runner,
                Runner::create(subject, golden, policy_of(golden), &observer, std::ssize(c.ids)));
  auto& state = dynamic_cast<v41::State&>(runner.state());
  const Limit limit = options.is_smooth ? Limit::kSmoothTap : Limit::kQuantisedBf16;
  std::vector<Tally> windows;
  recorder.set_on(false);
  bool is_first = true;
  FATHOM_TRY(walk(runner, c, [&](const DraftPass& pass, std::span<const float>) -> Status {
    recorder.set_prefix(pass.prefix());
    // The positions before this one; then this one, whose M the golden holds.
    observer.set_seeding(true);
    FATHOM_TRY(state.truncate(pass.position));
    FATHOM_TRY(runner.model().seed_drafts(state));
    observer.set_seeding(false);
    FATHOM_TRY(
        runner
            .run(std::span(c.ids).subspan(static_cast<size_t>(pass.position), 1), 0, c.prefill - 1)
            .status());
    recorder.set_on(true);
    FATHOM_TRY(runner.model().seed_drafts(state));
    const bool all_fed = is_first && seeds != nullptr && pass.position == c.prefill;
    const int64_t oldest = std::max<int64_t>(0, pass.position - config.text.sliding_window + 1);
    windows.push_back(
        compare_windows(golden, config.text, state, pass, all_fed ? oldest : pass.position, limit));
    FATHOM_ASSIGN(std::vector<TokenId> drafts, golden.tokens(pass.prefix() + "draft.ids"));
    if (!drafts.empty()) drafts.erase(drafts.begin());
    FATHOM_TRY(run_chain(runner, pass, drafts).status());
    recorder.set_on(false);
    is_first = false;
    return Status::ok();
  }));
  std::vector<Tally> tallies = recorder.finish();
  tallies.insert(tallies.end(), windows.begin(), windows.end());
  report->add(golden.name(), policy_of(golden) + kEachStep, std::move(tallies));
  return Status::ok();
}

}  // namespace

Status run_draft_case(const Subject& subject, GoldenCase& golden, Report* report) {
  FATHOM_ASSIGN(const DraftCase c, read_case(golden));
  for (const Arithmetic& arithmetic : arithmetics(golden))
    if (golden.has(c.passes.front().prefix() + "draft.logits" + arithmetic.suffix))
      FATHOM_TRY(run_end_to_end(subject, golden, c, arithmetic, report));
  return run_each_step_alone(subject, golden, c, report);
}

}  // namespace fathom::verify
