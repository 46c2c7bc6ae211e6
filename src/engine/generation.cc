#include "engine/generation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace fathom {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

SamplerOptions sampler_options(const LoadedModel& loaded, const AnswerRequest& request) {
  SamplerOptions options{request.sampling, loaded.markers.end_of_turn(), request.wants_logprobs,
                         request.top_logprobs};
  for (TokenId token : {loaded.markers.think_open, loaded.markers.think_close, loaded.markers.dsml})
    options.protected_tokens.push_back(token);
  return options;
}

// A drawn answer depends on how many drafts there were: its plan may depend neither on the clock
// nor on earlier answers, or its seed would not repeat it.
bool shares_planner(const AnswerRequest& request, const GenerationMemory& memory) {
  return request.sampling.temperature <= 0 && memory.planner.has_value();
}

std::optional<DraftPlanner> make_planner(const LoadedModel& loaded, const AnswerRequest& request,
                                         const GenerationMemory& memory) {
  if (loaded.model->info().draft_tokens_max == 0) return std::nullopt;
  if (shares_planner(request, memory)) return memory.planner;
  return DraftPlanner(costs_by_bytes(loaded.model->info()), /*follows_clock=*/false);
}

}  // namespace

int64_t expanded_prompt_tokens(const AnswerRequest& request) {
  auto count = static_cast<int64_t>(request.prompt.size());
  for (const PictureInput& picture : request.pictures) count += picture.token_count - 1;
  return count;
}

Generation::Generation(const LoadedModel& loaded, const AnswerRequest& request, AnswerSink& sink,
                       const StopSignals& signals, GenerationMemory& memory,
                       GenerationLimits limits, std::function<void()> on_step)
    : loaded_(loaded),
      request_(request),
      sink_(sink),
      signals_(signals),
      memory_(memory),
      limits_(limits),
      on_step_(std::move(on_step)),
      text_(loaded, request),
      answer_tokens_max_(std::min(request.answer_tokens_max,
                                  limits.context_tokens - expanded_prompt_tokens(request))),
      sampler_(sampler_options(loaded, request)),
      drafts_(*loaded.model, sampler_, request.drafts, make_planner(loaded, request, memory)) {}

Result<AnswerSummary> Generation::run(double queue_ms) {
  summary_.timings.queue_ms = queue_ms;
  summary_.usage.prompt_tokens = expanded_prompt_tokens(request_);

  auto start = Clock::now();
  FATHOM_TRY(encode_pictures());
  summary_.timings.picture_ms = ms_since(start);

  start = Clock::now();
  FATHOM_TRY(open_sequence());
  FATHOM_TRY(prefill());
  summary_.timings.prefill_ms = ms_since(start);

  decode_start_ = Clock::now();
  FATHOM_ASSIGN(summary_.reason, decode());
  summary_.timings.decode_ms = ms_since(decode_start_);
  if (shares_planner(request_, memory_)) memory_.planner = drafts_.planner();
  summary_.stop_string = text_.stop_string();
  return summary_;
}

Status Generation::encode_pictures() {
  size_t next = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(request_.prompt.size()); ++i) {
    const TokenId token = request_.prompt[static_cast<size_t>(i)];
    if (next == request_.pictures.size() || request_.picture_positions[next] != i) {
      inputs_.push_back({token, nullptr});
      keys_.push_back({token, -1, {}});
      continue;
    }
    const PictureInput& picture = request_.pictures[next++];
    FATHOM_ASSIGN(PictureTokens tokens,
                  loaded_.model->encode_picture(picture.image, &signals_.must_stop));
    on_step_();
    FATHOM_CHECK(tokens.count == picture.token_count, "a picture of {} positions, planned were {}",
                 tokens.count, picture.token_count);
    pictures_.push_back(std::move(tokens));
    for (int64_t row = 0; row < picture.token_count; ++row) {
      const float* embedding =
          pictures_.back().embeddings.data() + row * loaded_.model->info().hidden_size;
      inputs_.push_back({token, embedding});
      keys_.push_back({token, static_cast<int32_t>(row), row == 0 ? picture.content_id : ""});
    }
    summary_.usage.image_tokens += picture.token_count;
    if (signals_.wants_stop) return error(Code::kCancelled, "the request was cancelled");
  }
  return Status::ok();
}

Status Generation::open_sequence() {
  const auto prompt_count = static_cast<int64_t>(inputs_.size());
  const int64_t logits_from = prompt_count - 1;
  const int64_t tokens_max =
      std::min(limits_.context_tokens, prompt_count + request_.answer_tokens_max);
  if (request_.may_reuse_prefix) {
    if (auto cached = memory_.cache.take(keys_, logits_from, tokens_max)) {
      summary_.usage.cached_tokens = static_cast<int64_t>(cached->keys.size());
      sequence_ = std::move(*cached);
      return Status::ok();
    }
  }
  memory_.cache.clear();  // its memory is needed for this one
  // Room for the whole context lets the next turn go on from here; less will do if that is too
  // much.
  sequence_.token_count_max = limits_.context_tokens;
  auto state = loaded_.model->new_sequence(limits_.context_tokens);
  if (!state && state.status().code() == Code::kResourceExhausted) {
    sequence_.token_count_max = tokens_max;
    state = loaded_.model->new_sequence(tokens_max);
  }
  FATHOM_ASSIGN(sequence_.state, std::move(state));
  sequence_.logits_from = logits_from;
  return Status::ok();
}

Status Generation::forward(std::span<const InputToken> tokens) {
  const auto prompt_count = static_cast<int64_t>(inputs_.size());
  const int64_t first = sequence_.state->token_count();
  const SequenceRows rows{sequence_.state.get(), tokens, std::max(first, prompt_count - 1)};
  if (Status status = loaded_.model->forward({&rows, 1}, &signals_.must_stop, &logits_);
      !status.is_ok()) {
    sequence_.state.reset();  // undefined after a failure
    return status;
  }
  on_step_();
  const int64_t wanted = std::max<int64_t>(sequence_.state->token_count() - rows.logits_from, 0);
  FATHOM_CHECK(std::ssize(logits_) == wanted * loaded_.model->info().vocab_count,
               "{} logits of {} positions, the vocabulary has {}", logits_.size(), wanted,
               loaded_.model->info().vocab_count);
  return Status::ok();
}

Status Generation::prefill() {
  const auto prompt_count = static_cast<int64_t>(inputs_.size());
  while (sequence_.state->token_count() < prompt_count) {
    const int64_t first = sequence_.state->token_count();
    const int64_t count = std::min(limits_.prefill_chunk_tokens, prompt_count - first);
    FATHOM_TRY(forward(
        std::span(inputs_).subspan(static_cast<size_t>(first), static_cast<size_t>(count))));
    sequence_.keys.insert(sequence_.keys.end(), keys_.begin() + first,
                          keys_.begin() + first + count);
    sink_.on_prefill(first + count, summary_.usage);
    if (signals_.wants_stop) {
      FATHOM_TRY(keep_sequence());
      return error(Code::kCancelled, "the request was cancelled");
    }
  }
  return Status::ok();
}

bool Generation::ends_turn(TokenId token) const {
  const auto& stops = request_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return true;
  if (request_.ignores_end_of_turn) return false;
  const std::vector<TokenId> ends = loaded_.markers.end_of_turn();
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

void Generation::send(AnswerDelta delta) {
  if (delta.is_empty()) return;
  summary_.timings.decode_ms = ms_since(decode_start_);
  sink_.on_delta(std::move(delta), summary_);
}

SamplingContext Generation::sampling_context() const {
  return {request_.prompt, generated_, !text_.in_reasoning()};
}

// Before answer_tokens_min, and for whoever ignores it, an end of the turn is not drawn.
void Generation::hold_back_end_of_turn(std::span<float> logits) const {
  if (std::ssize(generated_) >= request_.answer_tokens_min && !request_.ignores_end_of_turn) return;
  for (TokenId token : loaded_.markers.end_of_turn()) logits[static_cast<size_t>(token)] = -1e30f;
}

Result<FinishReason> Generation::decode() {
  while (true) {
    FATHOM_ASSIGN(const SampledToken sampled, next_token());
    const bool is_drafted = drafts_.judge(sampled.token);
    summary_.drafts = drafts_.tallies();
    if (const auto reason = take(sampled)) {
      send(text_.finish());
      FATHOM_TRY(keep_sequence());
      return *reason;
    }
    if (signals_.wants_stop) {
      FATHOM_TRY(keep_sequence());
      return error(Code::kCancelled, "the request was cancelled");
    }
    if (!is_drafted) FATHOM_TRY(step());
  }
}

// The answer's next token, from the row of logits of its place.
Result<SampledToken> Generation::next_token() {
  const auto vocab = static_cast<size_t>(loaded_.model->info().vocab_count);
  const std::span<float> logits = std::span(logits_).subspan(drafts_.place() * vocab, vocab);
  hold_back_end_of_turn(logits);
  const Draft* draft = drafts_.current();
  return draft ? sampler_.judge(*draft, logits, sampling_context())
               : sampler_.pick(logits, sampling_context());
}

// Adds a token to the answer and tells the client; the reason if the answer ends with it.
std::optional<FinishReason> Generation::take(const SampledToken& token) {
  generated_.push_back(token.token);
  ++summary_.usage.completion_tokens;
  if (ends_turn(token.token)) {
    if (text_.in_reasoning()) ++summary_.usage.reasoning_tokens;
    return FinishReason::kStop;
  }
  AnswerDelta delta = text_.push(token);
  summary_.usage.reasoning_tokens = text_.reasoning_tokens();
  send(std::move(delta));
  if (text_.is_over()) return FinishReason::kStop;
  if (std::ssize(generated_) == answer_tokens_max_) return FinishReason::kLength;
  return std::nullopt;
}

// Runs the token drawn last, and drafts behind it.
Status Generation::step() {
  FATHOM_TRY(settle());
  const auto start = Clock::now();
  const TokenId next = generated_.back();
  const int64_t room = answer_tokens_max_ - std::ssize(generated_) - 1;
  FATHOM_TRY(
      drafts_.propose(*sequence_.state, next, sampling_context(), room, &signals_.must_stop));
  const double draft_ms = ms_since(start);
  std::vector<InputToken> tokens = {{next, nullptr}};
  for (const Draft& draft : drafts_.all()) tokens.push_back({draft.token, nullptr});
  FATHOM_TRY(forward(tokens));
  drafts_.took(draft_ms, ms_since(start) - draft_ms);
  return Status::ok();
}

// The state forgets drafts that did not become part of the answer. The token drawn last has not
// been run, or only as a draft that nothing follows.
Status Generation::settle() {
  const auto prompt_count = std::ssize(inputs_);
  const int64_t settled = prompt_count + std::max<int64_t>(std::ssize(generated_) - 1, 0);
  if (settled < sequence_.state->token_count()) FATHOM_TRY(sequence_.state->truncate(settled));
  for (int64_t i = std::ssize(sequence_.keys); i < sequence_.state->token_count(); ++i)
    sequence_.keys.push_back({generated_[static_cast<size_t>(i - prompt_count)], -1, {}});
  return Status::ok();
}

Status Generation::keep_sequence() {
  drafts_.finish();
  if (sequence_.state->token_count() >= std::ssize(inputs_)) FATHOM_TRY(settle());
  memory_.cache.put(std::move(sequence_));
  return Status::ok();
}

}  // namespace fathom
