// What the server adds to the model: time of a request and of a token when the model itself takes
// no time at all.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bench/figure.h"

namespace fathom::bench {

// `directory` gives the tokenizer; its weights are not read. Speaks HTTP over loopback.
Result<std::vector<Figure>> bench_server(const std::string& directory);

}  // namespace fathom::bench
