// tokenizer.json to TokenizerData. The file comes from outside: every claim in it is checked, and
// what Fathom would do differently from the reference library is refused by name.
#include <memory>
#include <optional>

#include "base/json.h"
#include "base/sha256.h"
#include "text/internal/byte_alphabet.h"
#include "text/internal/json_fields.h"
#include "text/internal/tokenizer_data.h"

namespace fathom::text::internal {

namespace {

class FileParser {
 public:
  FileParser(const Json& file, const TokenizerLimits& limits)
      : file_(file), limits_(limits), data_(std::make_unique<TokenizerData>()) {}

  Result<std::unique_ptr<TokenizerData>> run() {
    FATHOM_TRY(check_steps());
    FATHOM_TRY(check_model());
    FATHOM_ASSIGN(data_->pre_tokenizer, read_pre_tokenizer(member(file_, "pre_tokenizer")));
    FATHOM_TRY(read_vocabulary());
    FATHOM_TRY(read_added_tokens());
    FATHOM_TRY(check_ids());
    FATHOM_TRY(index_tokens());
    FATHOM_TRY(read_merges());
    return std::move(data_);
  }

 private:
  // Everything around the model must be what Fathom does: no normaliser, byte-level decoding.
  Status check_steps() const {
    if (!file_.is_object())
      return error(Code::kDataLoss, "wanted a JSON object, found a {}", file_.type_name());
    const Json& normalizer = member(file_, "normalizer");
    const Json& steps = member(normalizer, "normalizers");
    if (!normalizer.is_null() && !(steps.is_array() && steps.empty()))
      return error(Code::kUnsupported, "normalizer: {} is not supported", shown(normalizer));
    for (const char* name : {"truncation", "padding"})
      if (!member(file_, name).is_null())
        return error(Code::kUnsupported, "{}: {} is not supported, only null", name,
                     shown(member(file_, name)));
    for (const char* name : {"post_processor", "decoder"})
      if (const Json& step = member(file_, name);
          !step.is_null() && !is_string(member(step, "type"), "ByteLevel"))
        return error(Code::kUnsupported, "{}: {} is not supported, only ByteLevel", name,
                     shown(step));
    return {};
  }

  Status check_model() {
    const Json& model = member(file_, "model");
    if (!model.is_object())
      return error(Code::kDataLoss, "model: wanted an object, found {}", shown(model));
    const Json& type = member(model, "type");
    if (!type.is_null() && !is_string(type, "BPE"))
      return error(Code::kUnsupported, "model.type: {} is not supported, only \"BPE\"",
                   shown(type));
    for (const char* name : {"dropout", "unk_token", "continuing_subword_prefix",
                             "end_of_word_suffix", "byte_fallback"})
      if (is_set(member(model, name)))
        return error(Code::kUnsupported, "model.{}: {} is not supported", name,
                     shown(member(model, name)));
    data_->ignore_merges = is_set(member(model, "ignore_merges"));
    return {};
  }

  Result<TokenId> token_id(const std::string& name, const Json& value) const {
    const auto id = integer(value);
    if (!id || *id < 0 || *id >= static_cast<int64_t>(data_->tokens.size()))
      return error(Code::kDataLoss,
                   "token {}: id {}, wanted 0 to {}: ids have no holes, and the file has {} tokens",
                   in_quotes(name), shown(value), data_->tokens.size() - 1, data_->tokens.size());
    return static_cast<TokenId>(*id);
  }

  Status read_vocabulary() {
    const Json& vocab = member(member(file_, "model"), "vocab");
    const Json& added = member(file_, "added_tokens");
    if (!vocab.is_object() || vocab.empty())
      return error(Code::kDataLoss, "model.vocab: wanted an object with entries, found {}",
                   shown(vocab));
    if (!added.is_null() && !added.is_array())
      return error(Code::kDataLoss, "added_tokens: wanted an array, found {}", shown(added));
    const size_t count_max = vocab.size() + added.size();
    if (static_cast<int64_t>(count_max) > limits_.token_count_max ||
        static_cast<int64_t>(added.size()) > limits_.added_token_count_max)
      return error(Code::kDataLoss, "{} tokens and {} added tokens, at most {} and {} are read",
                   vocab.size(), added.size(), limits_.token_count_max,
                   limits_.added_token_count_max);
    data_->tokens.resize(count_max);
    spelling_of_.resize(count_max);
    id_of_spelling_.reserve(vocab.size());
    for (const auto& [spelling, value] : vocab.get_ref<const Json::object_t&>()) {
      FATHOM_ASSIGN(const TokenId id, token_id(spelling, value));
      FATHOM_TRY(check_length(spelling));
      if (!spelling_of_[id].empty())
        return error(Code::kDataLoss, "token {}: id {} belongs to {} already", in_quotes(spelling),
                     id, in_quotes(spelling_of_[id]));
      spelling_of_[id] = spelling;
      id_of_spelling_[spelling_of_[id]] = id;
    }
    return {};
  }

  Status check_length(std::string_view token) const {
    if (!token.empty() && static_cast<int64_t>(token.size()) <= limits_.token_bytes_max) return {};
    return error(Code::kDataLoss, "token {}: {} bytes, wanted 1 to {}", in_quotes(token),
                 token.size(), limits_.token_bytes_max);
  }

  Status read_added_tokens() {
    const Json& added = member(file_, "added_tokens");
    for (size_t i = 0; i < added.size(); ++i)
      FATHOM_TRY(read_added_token(added[i]).with_context(fmt::format("added_tokens[{}]", i)));
    return {};
  }

  Status read_added_token(const Json& entry) {
    const Json& content_json = member(entry, "content");
    if (!content_json.is_string())
      return error(Code::kDataLoss, "content: wanted a string, found {}", shown(content_json));
    const auto& content = content_json.get_ref<const std::string&>();
    FATHOM_TRY(check_length(content));
    FATHOM_ASSIGN(const TokenId id, token_id(content, member(entry, "id")));
    for (const char* name : {"single_word", "lstrip", "rstrip"})
      if (is_set(member(entry, name)))
        return error(Code::kUnsupported, "token {}: {} is not supported", in_quotes(content), name);
    const auto entry_of_vocabulary = id_of_spelling_.find(content);
    if (entry_of_vocabulary != id_of_spelling_.end() && entry_of_vocabulary->second != id)
      return error(Code::kDataLoss, "token {}: id {}, but {} in model.vocab", in_quotes(content),
                   id, entry_of_vocabulary->second);
    if (entry_of_vocabulary == id_of_spelling_.end() && !spelling_of_[id].empty())
      return error(Code::kDataLoss, "token {}: id {} belongs to {} already", in_quotes(content), id,
                   in_quotes(spelling_of_[id]));
    TokenInfo& token = data_->tokens[id];
    if (token.is_added || !data_->id_of_added.emplace(content, id).second)
      return error(Code::kDataLoss, "token {}: content or id {} appears twice", in_quotes(content),
                   id);
    const bool is_normalized = is_set(member(entry, "normalized"));
    token = {content, true, is_set(member(entry, "special"))};
    data_->added[is_normalized ? 1 : 0].insert(content, id);
    return {};
  }

  // Every id below the highest is taken, and every vocabulary entry has bytes.
  Status check_ids() {
    auto& tokens = data_->tokens;
    while (!tokens.empty() && !tokens.back().is_added && spelling_of_[tokens.size() - 1].empty())
      tokens.pop_back();
    for (size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id].is_added) continue;
      const std::string_view spelling = spelling_of_[id];
      if (spelling.empty())
        return error(Code::kDataLoss, "id {} has no token, but ids go up to {}", id,
                     tokens.size() - 1);
      auto bytes = unspell_bytes(spelling);
      if (!bytes)
        return error(Code::kDataLoss,
                     "token {} (id {}): not spelled in the byte alphabet and not an added token",
                     in_quotes(spelling), id);
      tokens[id].bytes = std::move(*bytes);
    }
    return {};
  }

  Status index_tokens() {
    data_->id_of_byte.fill(-1);
    for (size_t id = 0; id < data_->tokens.size(); ++id) {
      const std::string& bytes = data_->tokens[id].bytes;
      if (spelling_of_[id].empty()) continue;
      if (bytes.size() == 1) data_->id_of_byte[static_cast<uint8_t>(bytes[0])] = id;
      if (data_->ignore_merges) data_->id_of_word.emplace(bytes, id);
    }
    if (data_->ignore_merges) return {};  // a word list: a text may not need every byte
    for (int byte = 0; byte < 256; ++byte)
      if (data_->id_of_byte[byte] < 0)
        return error(Code::kDataLoss, "model.vocab: byte 0x{:02X} has no token ({})", byte,
                     in_quotes(spell_bytes(std::string(1, static_cast<char>(byte)))));
    return {};
  }

  Status read_merges() {
    const Json& merges = member(member(file_, "model"), "merges");
    if (!merges.is_array())
      return error(Code::kDataLoss, "model.merges: wanted an array, found {}", shown(merges));
    data_->merges = MergeTable(merges.size());
    data_->merge_list.reserve(merges.size());
    for (size_t rank = 0; rank < merges.size(); ++rank)
      if (auto read = read_merge(merges[rank], static_cast<int32_t>(rank)); !read.is_ok())
        return read.with_context(fmt::format("model.merges[{}] {}", rank, shown(merges[rank])));
    return {};
  }

  Status read_merge(const Json& merge, int32_t rank) {
    std::string_view left, right;
    if (merge.is_string()) {
      const std::string_view text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get_ref<const std::string&>();
      right = merge[1].get_ref<const std::string&>();
    }
    if (left.empty() || right.empty())
      return error(Code::kDataLoss, "wanted two parts, as \"left right\" or [left, right]");
    FATHOM_ASSIGN(const TokenId left_id, part_id(left));
    FATHOM_ASSIGN(const TokenId right_id, part_id(right));
    FATHOM_ASSIGN(const TokenId result_id, part_id(std::string(left).append(right)));
    if (!data_->merges.insert(left_id, right_id, {rank, result_id}))
      return error(Code::kDataLoss, "the same merge stands twice");
    data_->merge_list.emplace_back(left_id, right_id);
    return {};
  }

  Result<TokenId> part_id(std::string_view part) const {
    const auto it = id_of_spelling_.find(part);
    if (it != id_of_spelling_.end()) return it->second;
    return error(Code::kDataLoss, "{} is not in model.vocab", in_quotes(part));
  }

  const Json& file_;
  const TokenizerLimits& limits_;
  std::unique_ptr<TokenizerData> data_;
  std::vector<std::string_view> spelling_of_;  // by id, views file_; empty: not in model.vocab
  std::unordered_map<std::string_view, TokenId> id_of_spelling_;  // keys view file_
};

}  // namespace

Result<std::unique_ptr<TokenizerData>> parse_tokenizer_file(std::string_view json,
                                                            const TokenizerLimits& limits) {
  const JsonLimits json_limits{.bytes_max = limits.file_bytes_max,
                               .depth_max = 16,
                               .values_max = 8 * limits.token_count_max};
  auto file = parse_json(json, json_limits);
  if (!file) return Status::error(Code::kDataLoss, file.status().message());
  FATHOM_ASSIGN(auto data, FileParser(*file, limits).run());
  data->file_sha256 = sha256_hex(json);
  return data;
}

}  // namespace fathom::text::internal
