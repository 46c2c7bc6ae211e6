#include "text/engram_token_map.h"

#include <utf8proc.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <unordered_map>

#include "base/log.h"
#include "base/sha256.h"
#include "text/stream_decoder.h"

namespace fathom::text {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kLineSpaces = " \t\r\n";  // the runs that become one space

// The reference keeps a lone space from being stripped by writing it as this, and back at the end.
constexpr utf8proc_int32_t kLoneSpace = 0xE000;

void append_utf8(utf8proc_int32_t code_point, std::string* text) {
  utf8proc_uint8_t bytes[4];
  text->append(reinterpret_cast<char*>(bytes), utf8proc_encode_char(code_point, bytes));
}

bool is_mark(utf8proc_int32_t c) {
  const auto category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

// Unicode White_Space beyond kLineSpaces.
bool is_space(utf8proc_int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// NFKC, then NFD. The text is valid UTF-8, so only memory can fail.
std::vector<utf8proc_int32_t> normal_form(std::string_view text) {
  const auto map = [](std::string_view in, int options) {
    utf8proc_uint8_t* out = nullptr;
    const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(in.data()),
                                   static_cast<utf8proc_ssize_t>(in.size()), &out,
                                   static_cast<utf8proc_option_t>(options));
    FATHOM_CHECK(size >= 0, "utf8proc: {}", utf8proc_errmsg(size));
    std::string result(reinterpret_cast<char*>(out), size);
    std::free(out);
    return result;
  };
  const std::string nfkc = map(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  const std::string nfd = map(nfkc, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  std::vector<utf8proc_int32_t> points;
  for (size_t at = 0; at < nfd.size();) {
    utf8proc_int32_t c = 0;
    at += utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(nfd.data()) + at,
                           static_cast<utf8proc_ssize_t>(nfd.size() - at), &c);
    points.push_back(c);
  }
  return points;
}

// Without marks, in lower case, runs of kLineSpaces as one space. After NFD no character is left
// whose lower case is more than one character (U+0130 is one, and is apart by then).
std::vector<utf8proc_int32_t> folded(std::string_view text) {
  std::vector<utf8proc_int32_t> out;
  bool in_spaces = false;
  for (const utf8proc_int32_t c : normal_form(text)) {
    if (is_mark(c)) continue;
    const bool is_line_space =
        c < 0x80 && kLineSpaces.find(static_cast<char>(c)) != std::string::npos;
    if (is_line_space && in_spaces) continue;
    in_spaces = is_line_space;
    out.push_back(is_line_space ? ' ' : utf8proc_tolower(c));
  }
  return out;
}

// Spellings with the same key share a compressed id (spec §5.1).
std::string compressed_key(const Tokenizer& tokenizer, TokenId id) {
  const std::string text = to_valid_utf8(tokenizer.token_bytes(id));
  if (text.find(kReplacement) != std::string::npos) return tokenizer.token_spelling(id);
  const auto points = folded(text);
  if (points.size() == 1 && points[0] == ' ') return " ";
  size_t begin = 0, end = points.size();
  while (begin < end && is_space(points[begin])) ++begin;
  while (begin < end && is_space(points[end - 1])) --end;
  if (begin == end) return text;
  std::string key;
  for (; begin < end; ++begin) append_utf8(points[begin] == kLoneSpace ? ' ' : points[begin], &key);
  return key;
}

// ---- cache file: magic, token count, distinct count, SHA-256 of the ids in hex, the ids ---------
// Numbers are little endian, as the machine's are.

constexpr char kMagic[8] = {'F', 'T', 'H', 'E', 'N', 'G', 'M', '1'};

struct CacheHeader {
  char magic[8];
  int64_t token_count;
  int64_t distinct_count;
  char sha256[64];
};

std::string_view bytes_of(const std::vector<int32_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)};
}

// Nothing when the file is missing or not whole: it is only a cache.
std::optional<EngramTokenMap> read_cache(const std::string& path, int64_t token_count) {
  std::ifstream file(path, std::ios::binary);
  CacheHeader header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.token_count != token_count)
    return std::nullopt;
  EngramTokenMap map;
  map.distinct_count = header.distinct_count;
  map.compressed_of.resize(token_count);
  const auto bytes = static_cast<std::streamsize>(bytes_of(map.compressed_of).size());
  if (!file.read(reinterpret_cast<char*>(map.compressed_of.data()), bytes) ||
      file.peek() != std::ifstream::traits_type::eof())
    return std::nullopt;
  if (sha256_hex(bytes_of(map.compressed_of)) != std::string_view(header.sha256, 64))
    return std::nullopt;
  for (const int32_t id : map.compressed_of)
    if (id < 0 || id >= map.distinct_count) return std::nullopt;
  return map;
}

// Through a file of its own name and a rename, so that a reader never sees half a file.
void write_cache(const std::string& path, const EngramTokenMap& map) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  CacheHeader header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.token_count = static_cast<int64_t>(map.compressed_of.size());
  header.distinct_count = map.distinct_count;
  std::memcpy(header.sha256, sha256_hex(bytes_of(map.compressed_of)).data(), 64);
  const std::string scratch =
      fmt::format("{}.{:x}", path, reinterpret_cast<uintptr_t>(&header) ^ std::random_device()());
  std::ofstream file(scratch, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file << bytes_of(map.compressed_of);
  file.close();
  if (file) fs::rename(scratch, path, ignored);
  if (!file || ignored) {
    log(LogLevel::kWarning, "{}: the Engram token map cannot be cached here", path);
    fs::remove(scratch, ignored);
  }
}

}  // namespace

EngramTokenMap build_engram_token_map(const Tokenizer& tokenizer) {
  EngramTokenMap map;
  map.compressed_of.reserve(tokenizer.vocab_count());
  std::unordered_map<std::string, int32_t> id_of_key;
  for (TokenId id = 0; tokenizer.contains(id); ++id) {
    const auto next = static_cast<int32_t>(id_of_key.size());
    map.compressed_of.push_back(
        id_of_key.try_emplace(compressed_key(tokenizer, id), next).first->second);
  }
  map.distinct_count = static_cast<int64_t>(id_of_key.size());
  return map;
}

Result<EngramTokenMap> load_engram_token_map(const Tokenizer& tokenizer,
                                             const std::string& cache_dir,
                                             int64_t distinct_expected) {
  std::string path;
  std::optional<EngramTokenMap> map;
  if (!cache_dir.empty()) {
    path = fmt::format("{}/engram-{}.map", cache_dir, tokenizer.file_sha256());
    map = read_cache(path, tokenizer.vocab_count());
  }
  const bool was_cached = map.has_value();
  if (!was_cached) map = build_engram_token_map(tokenizer);
  if (map->distinct_count != distinct_expected)
    return error(Code::kDataLoss,
                 "tokenizer.json gives {} compressed Engram ids, the config says {}: the tokenizer "
                 "is not the one of this checkpoint; download tokenizer.json again",
                 map->distinct_count, distinct_expected);
  if (!was_cached && !path.empty()) write_cache(path, *map);
  return std::move(*map);
}

}  // namespace fathom::text
