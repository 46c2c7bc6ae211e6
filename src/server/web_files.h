// The chat page's files, compiled into the program (src/server/CMakeLists.txt). No file system.
#pragma once

#include <string_view>

namespace fathom::server {

struct WebFile {
  std::string_view name;  // "index.html", "js/app.js"
  std::string_view content_type;
  std::string_view bytes;
};

// Null when there is no such file.
const WebFile* find_web_file(std::string_view name);

}  // namespace fathom::server
