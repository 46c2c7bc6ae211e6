// Which build this is; filled in by src/cli/CMakeLists.txt.
#pragma once

namespace fathom::cli {

extern const char* const kBuildId;    // git describe, or "unknown"
extern const char* const kBuildType;  // Release, RelWithDebInfo

}  // namespace fathom::cli
