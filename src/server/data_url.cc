#include "server/data_url.h"

#include <algorithm>
#include <array>

#include "server/http_message.h"
#include "server/percent.h"

namespace fathom::server {

namespace {

constexpr int8_t kBad = -1, kSkip = -2, kPad = -3;

constexpr std::array<int8_t, 256> make_base64_table() {
  std::array<int8_t, 256> table{};
  for (auto& entry : table) entry = kBad;
  for (int8_t i = 0; i < 26; ++i) {
    table[size_t{'A'} + static_cast<size_t>(i)] = i;
    table[size_t{'a'} + static_cast<size_t>(i)] = static_cast<int8_t>(26 + i);
  }
  for (int8_t i = 0; i < 10; ++i)
    table[size_t{'0'} + static_cast<size_t>(i)] = static_cast<int8_t>(52 + i);
  table['+'] = table['-'] = 62;
  table['/'] = table['_'] = 63;
  table['\r'] = table['\n'] = table[' '] = table['\t'] = kSkip;
  table['='] = kPad;
  return table;
}

constexpr auto kBase64 = make_base64_table();

Result<std::string> base64_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int64_t digits = 0;
  bool is_padded = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const int8_t value = kBase64[static_cast<unsigned char>(text[i])];
    if (value == kSkip) continue;
    if (value == kPad) {
      is_padded = true;
      continue;
    }
    if (value == kBad || is_padded)
      return error(Code::kInvalidArgument, "the base64 data is damaged at character {}", i);
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++digits % 4 != 0) continue;
    out += static_cast<char>(bits >> 16);
    out += static_cast<char>(bits >> 8);
    out += static_cast<char>(bits);
  }
  if (digits % 4 == 1)
    return error(Code::kInvalidArgument, "the base64 data is cut: {} characters are no whole bytes",
                 digits);
  if (digits % 4 == 2) out += static_cast<char>(bits >> 4);
  if (digits % 4 == 3) {
    out += static_cast<char>(bits >> 10);
    out += static_cast<char>(bits >> 2);
  }
  return out;
}

}  // namespace

Result<std::string> decode_data_url(std::string_view url, int64_t bytes_max) {
  constexpr std::string_view kScheme = "data:";
  // Spaces and line ends around an address are no part of it, as in a browser.
  const size_t first = url.find_first_not_of(" \t\r\n");
  url.remove_prefix(std::min(first, url.size()));
  if (!equals_ignoring_case(url.substr(0, kScheme.size()), kScheme))
    return error(Code::kUnsupported,
                 "only data: URLs are taken, nothing is fetched; send the picture as "
                 "data:image/png;base64,...");
  const size_t comma = url.find(',');
  if (comma == std::string_view::npos)
    return error(Code::kInvalidArgument, "the data: URL has no comma before its data");
  const std::string_view head = url.substr(kScheme.size(), comma - kScheme.size());
  const std::string_view data = url.substr(comma + 1);
  constexpr std::string_view kBase64Mark = ";base64";
  const bool is_base64 =
      head.size() >= kBase64Mark.size() &&
      equals_ignoring_case(head.substr(head.size() - kBase64Mark.size()), kBase64Mark);
  // Four characters of base64 give at most three bytes; an escape of three characters gives one.
  if (static_cast<int64_t>(data.size()) > bytes_max * 3 + 64)
    return error(Code::kInvalidArgument, "a picture of more than {} bytes", bytes_max);
  const bool is_escaped = data.find('%') != std::string_view::npos;
  const std::string plain = is_escaped ? percent_decoded(data) : std::string();
  Result<std::string> bytes = !is_base64
                                  ? Result<std::string>(is_escaped ? plain : std::string(data))
                                  : base64_decoded(is_escaped ? std::string_view(plain) : data);
  if (!bytes) return bytes.status();
  if (bytes->empty()) return error(Code::kInvalidArgument, "the data: URL holds no bytes");
  if (static_cast<int64_t>(bytes->size()) > bytes_max)
    return error(Code::kInvalidArgument, "a picture of {} bytes, at most {} are taken",
                 bytes->size(), bytes_max);
  return bytes;
}

}  // namespace fathom::server
