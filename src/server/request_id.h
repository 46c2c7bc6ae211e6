// Ids that go to clients: unguessable where they could address something, harmless in a header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom::server {

std::string random_text(int64_t length);  // letters and digits from the kernel's generator
uint64_t random_u64();
std::string make_request_id();                     // req_...
bool is_harmless_request_id(std::string_view id);  // 1..128 printable ASCII without spaces

}  // namespace fathom::server
