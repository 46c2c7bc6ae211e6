// The commands of the program: each takes its settings and gives an exit code. 0 is success, 1 a
// failure of what was asked, 2 a wrong command line.
#pragma once

#include "cli/options.h"

namespace fathom::cli {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

int run_command(const Settings& settings);
int chat_command(const Settings& settings);
int serve_command(const Settings& settings);
int inspect_command(const Settings& settings);
int verify_command(const Settings& settings);
int tokenize_command(const Settings& settings);
int bench_command(const Settings& settings);
int version_command();

// Prints "fathom: MESSAGE" on standard error; gives the exit code for the status.
int report(const Status& status);

}  // namespace fathom::cli
