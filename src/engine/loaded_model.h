// A model with everything needed to talk to it. Made by load_model (model_loader.h) from a
// checkpoint, by tests from a script.
#pragma once

#include <memory>
#include <string>

#include "model/language_model.h"
#include "text/prompt_profile.h"
#include "text/tokenizer.h"

namespace fathom {

struct LoadedModel {
  std::string name;  // the directory's base name, never a path
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  const text::PromptProfile* profile = nullptr;
  text::MarkerIds markers;
  int64_t parameter_count = 0;  // 0: not known
  int64_t payload_bytes = 0;    // 0: not known
};

}  // namespace fathom
