#include "text/tokenizer.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

#include "base/sha256.h"
#include "text/internal/bpe.h"
#include "text/internal/byte_alphabet.h"
#include "text/internal/pre_tokenizer.h"
#include "text/internal/tokenizer_data.h"
#include "text/stream_decoder.h"

namespace fathom::text {

using internal::TokenizerData;

namespace {

Result<std::string> read_file(const std::string& path, int64_t bytes_max) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec))
    return error(Code::kNotFound, "{}: wanted the tokenizer, found no such file: fetch it", path);
  // Looked at before it is opened: opening a pipe waits for somebody to write to it.
  if (!std::filesystem::is_regular_file(path, ec))
    return error(Code::kDataLoss, "{}: wanted a regular file, found a folder, a pipe or a device",
                 path);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = file ? static_cast<int64_t>(file.tellg()) : -1;
  if (size < 0) return error(Code::kDataLoss, "{}: cannot be read", path);
  if (size > bytes_max)
    return error(Code::kDataLoss, "{}: {} bytes, at most {} are read", path, size, bytes_max);
  std::string bytes(static_cast<size_t>(size), '\0');
  file.seekg(0);
  file.read(bytes.data(), size);
  if (file.gcount() != size)
    return error(Code::kDataLoss, "{}: {} of {} bytes could be read", path, file.gcount(), size);
  return bytes;
}

// Encodes one text: added tokens that the caller finds, and BPE of what lies between them.
class Encoder {
 public:
  explicit Encoder(const TokenizerData& data) : data_(data) {}

  // Text that may be joined with what comes next.
  void add_text(std::string_view text) { pending_ += text; }

  // Trusted text. Matching does not look across its ends.
  Status add_trusted(std::string_view text) { return match(text, 0); }

  Result<std::vector<TokenId>> finish() {
    FATHOM_TRY(flush());
    return std::move(ids_);
  }

 private:
  // Finds the tokens of pass 0 (not normalized), and in between those of pass 1.
  Status match(std::string_view text, size_t pass) {
    if (pass == data_.added.size()) {
      add_text(text);
      return {};
    }
    size_t at = 0;
    while (const auto found = data_.added[pass].find(text, at)) {
      FATHOM_TRY(match(text.substr(at, found->begin - at), pass + 1));
      FATHOM_TRY(flush());
      ids_.push_back(found->id);
      at = found->end;
    }
    return match(text.substr(at), pass + 1);
  }

  Status flush() {
    for (const auto piece : internal::split_pieces(data_.pre_tokenizer, pending_))
      FATHOM_TRY(encode_piece(piece));
    pending_.clear();
    return {};
  }

  Status encode_piece(std::string_view piece) {
    if (data_.ignore_merges)
      if (const auto word = data_.id_of_word.find(piece); word != data_.id_of_word.end()) {
        ids_.push_back(word->second);
        return {};
      }
    symbols_.clear();
    for (const char byte : piece) {
      const TokenId id = data_.id_of_byte[static_cast<uint8_t>(byte)];
      if (id < 0)
        return error(Code::kInvalidArgument, "the tokenizer has no token for byte 0x{:02X}",
                     static_cast<uint8_t>(byte));
      symbols_.push_back(id);
    }
    internal::merge_symbols(data_.merges, &symbols_);
    ids_.insert(ids_.end(), symbols_.begin(), symbols_.end());
    return {};
  }

  const TokenizerData& data_;
  std::string pending_;
  std::vector<TokenId> ids_;
  std::vector<TokenId> symbols_;  // of one piece; kept to save allocations
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerData> data) : data_(std::move(data)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const std::string& path,
                                                   const TokenizerLimits& limits) {
  FATHOM_ASSIGN(const std::string bytes, read_file(path, limits.file_bytes_max));
  auto tokenizer = parse(bytes, limits);
  return tokenizer ? std::move(tokenizer) : tokenizer.status().with_context(path);
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::parse(std::string_view json,
                                                    const TokenizerLimits& limits) {
  FATHOM_ASSIGN(auto data, internal::parse_tokenizer_file(json, limits));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(data)));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, AddedTokens added) const {
  Encoder encoder(*data_);
  if (added == AddedTokens::kMatch) {
    FATHOM_TRY(encoder.add_trusted(text));
  } else {
    encoder.add_text(text);
  }
  return encoder.finish();
}

Result<std::vector<TokenId>> Tokenizer::encode(std::span<const Segment> segments) const {
  Encoder encoder(*data_);
  for (size_t i = 0; i < segments.size();) {
    if (!segments[i].is_trusted) {
      encoder.add_text(segments[i++].text);
      continue;
    }
    std::string trusted;  // neighbouring trusted stretches are one: a marker may span them
    for (; i < segments.size() && segments[i].is_trusted; ++i) trusted += segments[i].text;
    FATHOM_TRY(encoder.add_trusted(trusted));
  }
  return encoder.finish();
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  StreamDecoder decoder(*this, skip_special);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.flush();
}

int64_t Tokenizer::vocab_count() const {
  return static_cast<int64_t>(data_->tokens.size());
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  FATHOM_CHECK(contains(id), "token id {} of {}", id, vocab_count());
  return data_->tokens[id].bytes;
}

std::string Tokenizer::token_spelling(TokenId id) const {
  const std::string_view bytes = token_bytes(id);
  return is_added(id) ? std::string(bytes) : internal::spell_bytes(bytes);
}

bool Tokenizer::is_added(TokenId id) const {
  return contains(id) && data_->tokens[id].is_added;
}
bool Tokenizer::is_special(TokenId id) const {
  return contains(id) && data_->tokens[id].is_special;
}

std::optional<TokenId> Tokenizer::added_token(std::string_view content) const {
  const auto it = data_->id_of_added.find(std::string(content));
  if (it == data_->id_of_added.end()) return std::nullopt;
  return it->second;
}

const std::string& Tokenizer::file_sha256() const {
  return data_->file_sha256;
}

std::vector<int64_t> Tokenizer::piece_lengths(std::string_view text) const {
  std::vector<int64_t> lengths;
  for (const auto piece : internal::split_pieces(data_->pre_tokenizer, text))
    lengths.push_back(static_cast<int64_t>(piece.size()));
  return lengths;
}

std::string Tokenizer::merges_sha256() const {
  std::string lines;
  for (const auto& [left, right] : data_->merge_list)
    lines += token_spelling(left) + " " + token_spelling(right) + "\n";
  return sha256_hex(lines);
}

}  // namespace fathom::text
