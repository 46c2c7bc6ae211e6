#include "tests/engine/fake_model.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/json.h"
#include "engine/sampling.h"

namespace fathom::testing {

namespace {

constexpr int64_t kHiddenSize = 4;

std::string utf8(int code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 63))};
}

// GPT-2's printable alphabet: the spelling of each byte in tokenizer.json.
std::vector<std::string> byte_spellings() {
  std::vector<std::string> spellings;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    spellings.push_back(utf8(is_printable ? byte : next++));
  }
  return spellings;
}

struct FakeState : SequenceState {
  explicit FakeState(std::shared_ptr<FakeScript> script_in) : script(std::move(script_in)) {
    ++script->sequences_alive;
  }
  ~FakeState() override { --script->sequences_alive; }
  int64_t token_count() const override { return static_cast<int64_t>(history.size()); }
  int64_t bytes() const override { return token_count() * 4; }
  Status truncate(int64_t token_count) override {
    if (token_count < token_count_before || token_count > this->token_count())
      return error(Code::kInvalidArgument, "positions {} to {} can be taken back, not {}",
                   token_count_before, this->token_count(), token_count);
    history.resize(static_cast<size_t>(token_count));
    return Status::ok();
  }

  std::shared_ptr<FakeScript> script;
  std::vector<TokenId> history;
  int64_t token_count_before = 0;  // the last forward
};

class FakeModel : public LanguageModel {
 public:
  FakeModel(std::shared_ptr<FakeScript> script, const text::Tokenizer* tokenizer,
            text::MarkerIds markers, int64_t context_tokens, bool has_vision, int64_t draft_tokens)
      : script_(std::move(script)), tokenizer_(tokenizer), markers_(markers) {
    info_.architecture = "fake";
    info_.vocab_count = tokenizer->vocab_count();
    info_.hidden_size = kHiddenSize;
    info_.context_tokens_max = context_tokens;
    info_.bos_token = markers.bos;
    info_.eos_token = markers.eos;
    info_.image_token = markers.image;
    info_.has_vision = has_vision;
    info_.draft_tokens_max = draft_tokens;
    for (int64_t i = 0; i <= draft_tokens; ++i)
      info_.step_bytes.push_back(1 + 0.1 * static_cast<double>(i));
    info_.draft_bytes = 0.2;
  }

  const ModelInfo& info() const override { return info_; }

  Result<std::unique_ptr<SequenceState>> new_sequence(int64_t token_count_max) override {
    if (token_count_max > script_->sequence_tokens_max)
      return error(Code::kResourceExhausted, "no room for {} positions", token_count_max);
    return std::unique_ptr<SequenceState>(new FakeState(script_));
  }

  Status forward(std::span<const SequenceRows> sequences, const CancelFlag* cancel,
                 std::vector<float>* logits) override {
    logits->clear();
    ++script_->forward_count;
    for (const SequenceRows& rows : sequences) {
      const auto count = static_cast<int64_t>(rows.tokens.size());
      script_->rows_count += count;
      FATHOM_TRY(pause(script_->forward_ms * 1000 + script_->row_us * count, cancel));
      auto& state = static_cast<FakeState&>(*rows.state);
      state.token_count_before = state.token_count();
      for (const InputToken& input : rows.tokens) {
        const int64_t position = state.token_count();
        if (position == script_->fails_at)
          return error(Code::kInternal, "layer 3 attention: a value is not finite");
        state.history.push_back(input.token);
        if (position >= rows.logits_from) add_logits(state.history, position, logits);
      }
    }
    return Status::ok();
  }

  Status draft(SequenceState& state, TokenId next, const DraftChoice& choose,
               const CancelFlag* cancel) override {
    ++script_->draft_count;
    if (state.token_count() == script_->draft_fails_at)
      return error(Code::kInternal, "mtp.0 attention: a value is not finite");
    FATHOM_TRY(pause(script_->row_us, cancel));
    std::vector<TokenId> history = static_cast<FakeState&>(state).history;
    history.push_back(next);
    for (int64_t i = 0; i < info_.draft_tokens_max; ++i) {
      const auto position = static_cast<int64_t>(history.size()) - 1;
      std::vector<float> logits;
      add_logits(history, position, &logits);
      const bool is_good = script_->drafts_well(position + 1);
      if (!is_good) logits['#'] += 100;
      const auto token = choose({logits, is_good ? 0.9f : 0.6f});
      if (!token) break;
      history.push_back(*token);
    }
    return Status::ok();
  }

  Result<int64_t> picture_token_count(int64_t width, int64_t height) const override {
    return 3 + width / 32 + height / 32;
  }

  Result<PictureTokens> encode_picture(const RgbImage& image, const CancelFlag* cancel) override {
    FATHOM_TRY(pause(script_->forward_ms * 1000, cancel));
    FATHOM_ASSIGN(const int64_t count, picture_token_count(image.width, image.height));
    return PictureTokens{count, std::vector<float>(static_cast<size_t>(count * kHiddenSize))};
  }

 private:
  static Status pause(int64_t us, const CancelFlag* cancel) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(us);
    while (us > 0 && Clock::now() < end) {
      if (cancel && *cancel) return error(Code::kCancelled, "stopped between two layers");
      std::this_thread::sleep_for(std::chrono::microseconds(std::min<int64_t>(us, 1000)));
    }
    return Status::ok();
  }

  void add_logits(const std::vector<TokenId>& history, int64_t position,
                  std::vector<float>* logits) const {
    const size_t begin = logits->size();
    for (int64_t id = 0; id < info_.vocab_count; ++id)
      logits->push_back(static_cast<float>(
          counter_uniform(7, static_cast<uint64_t>(position), static_cast<uint64_t>(id))));
    if (script_->is_flat)
      for (TokenId id = 'a'; id <= 'z'; ++id) (*logits)[begin + static_cast<size_t>(id)] += 12;
    else
      (*logits)[begin + static_cast<size_t>(next_token(history))] += 60;
    if (position == script_->nan_at) (*logits)[begin] = NAN;
  }

  // The scripted token after `history`: the prompt ends with the assistant marker and a think mark.
  TokenId next_token(const std::vector<TokenId>& history) const {
    const auto assistant = std::find(history.rbegin(), history.rend(), markers_.assistant);
    const auto after = history.rbegin().base() - history.begin();
    size_t answered = static_cast<size_t>(after);
    bool is_thinking = false;
    if (assistant != history.rend()) {
      const auto mark = static_cast<size_t>(assistant.base() - history.begin());
      is_thinking = mark < history.size() && history[mark] == markers_.think_open;
      answered = history.size() - std::min(history.size(), mark + 1);
    }
    const std::vector<TokenId> answer = answer_tokens(user_text(history), is_thinking);
    if (answered < answer.size()) return answer[answered];
    return script_->never_ends ? answer[answered % answer.size()] : markers_.eos;
  }

  std::vector<TokenId> answer_tokens(const std::string& user, bool is_thinking) const {
    std::vector<TokenId> tokens;
    if (is_thinking) {
      tokens = *tokenizer_->encode(script_->reasoning_of(user), text::AddedTokens::kIgnore);
      tokens.push_back(markers_.think_close);
    }
    const auto answer = *tokenizer_->encode(script_->answer_of(user), text::AddedTokens::kMatch);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    return tokens;
  }

  std::string user_text(const std::vector<TokenId>& history) const {
    const auto assistant = std::find(history.rbegin(), history.rend(), markers_.assistant);
    const auto end = assistant == history.rend() ? history.end() : assistant.base() - 1;
    auto begin = end;
    while (begin != history.begin() && *(begin - 1) != markers_.user) --begin;
    return tokenizer_->decode(std::vector<TokenId>(begin, end));
  }

  std::shared_ptr<FakeScript> script_;
  const text::Tokenizer* tokenizer_;
  text::MarkerIds markers_;
  ModelInfo info_;
};

}  // namespace

std::unique_ptr<text::Tokenizer> make_fake_tokenizer() {
  Json vocab = Json::object();
  const std::vector<std::string> spellings = byte_spellings();
  for (size_t byte = 0; byte < 256; ++byte) vocab[spellings[byte]] = byte;
  Json merges = Json::array();
  int id = 256;
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"S", "T"}, {"ST", "O"}, {"t", "h"}, {"th", "e"}, {"\xC3\xB0", spellings[0x9F]}};
  for (const auto& [left, right] : pairs) {
    merges.push_back(left + " " + right);
    vocab[left + right] = id++;
  }
  Json added = Json::array();
  for (std::string_view content :
       {text::kBos, text::kEos, text::kUser, text::kAssistant, text::kThinkOpen, text::kThinkClose,
        text::kDsml, text::kLatestReminder, std::string_view("<｜System｜>"),
        std::string_view("<｜deepseek_image｜>"), std::string_view("<｜action｜>"),
        std::string_view("<｜query｜>"), std::string_view("<｜authority｜>"),
        std::string_view("<｜domain｜>"), std::string_view("<｜title｜>"),
        std::string_view("<｜read_url｜>")}) {
    const bool is_special = content == text::kBos || content == text::kEos;
    added.push_back({{"id", id++},
                     {"content", content},
                     {"special", is_special},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  }
  const Json file = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
  auto tokenizer = text::Tokenizer::parse(file.dump());
  FATHOM_CHECK(tokenizer.is_ok(), "{}", tokenizer.status().message());
  return std::move(*tokenizer);
}

Fake make_fake(int64_t context_tokens, bool has_vision, int64_t draft_tokens) {
  Fake fake;
  fake.script = std::make_shared<FakeScript>();
  LoadedModel& loaded = fake.loaded;
  loaded.name = "fake";
  loaded.tokenizer = make_fake_tokenizer();
  loaded.profile = *text::find_prompt_profile("v41");
  auto markers = text::find_markers(*loaded.tokenizer, *loaded.profile);
  FATHOM_CHECK(markers.is_ok(), "{}", markers.status().message());
  loaded.markers = *markers;
  loaded.model = std::make_unique<FakeModel>(fake.script, loaded.tokenizer.get(), loaded.markers,
                                             context_tokens, has_vision, draft_tokens);
  return fake;
}

}  // namespace fathom::testing
