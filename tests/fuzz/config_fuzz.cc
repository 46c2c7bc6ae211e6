// Any bytes as config.json. What is accepted must have a role for each layer.
#include "base/check.h"
#include "model/deepseek_v41/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const auto config = v41::parse_config({reinterpret_cast<const char*>(data), size});
  if (!config) return 0;
  for (int32_t l = 0; l < config->text.num_hidden_layers; ++l) {
    const v41::LayerRole role = v41::layer_role(config->text, LayerId{l});
    FATHOM_CHECK((role.ratio > 0) == (role.kv_source >= 0 && role.index_source >= 0),
                 "layer {} of ratio {}", l, role.ratio);
  }
  return 0;
}
