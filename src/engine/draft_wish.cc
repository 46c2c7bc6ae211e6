#include "engine/draft_wish.h"

#include <charconv>

namespace fathom {

Result<DraftWish> parse_draft_wish(std::string_view text) {
  if (text == "auto") return DraftWish{};
  if (text == "off") return DraftWish{0};
  int64_t count = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem != std::errc() || end != text.data() + text.size() || count < 0 || count > kDraftsMax)
    return error(Code::kInvalidArgument, "wanted auto, off or 0 to {}, found {}", kDraftsMax,
                 text.substr(0, 40));
  return DraftWish{count};
}

}  // namespace fathom
