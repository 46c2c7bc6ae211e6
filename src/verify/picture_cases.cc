// Pictures: resize plan, patches, tower, aligner, placement, and the text around them.
#include <fmt/format.h>

#include <algorithm>

#include "io/picture/decode.h"
#include "io/read_file.h"
#include "model/deepseek_v41/vision/resize_plan.h"
#include "verify/cases.h"
#include "verify/recorder.h"

namespace fathom::verify {
namespace {

struct Picture {
  RgbImage image;
  int64_t start = 0;  // position of its span
  int64_t span = 0;
};

// A golden's pictures are ours: nothing bounds their shape.
PictureLimits golden_limits() {
  PictureLimits limits;
  limits.ratio_max = limits.side_max;
  return limits;
}

// Opens the files and compares the plan of each with the index.
Result<std::vector<Picture>> open_pictures(const v41::Config& config, const std::string& folder,
                                           GoldenCase& golden, Tally* plans) {
  std::vector<Picture> pictures;
  for (const Json& entry : golden.entry().value("pictures", Json::array())) {
    Picture picture;
    const std::string path = folder + "/" + entry.value("file", std::string());
    FATHOM_ASSIGN(const std::string bytes, read_file(path, int64_t{64} << 20));
    Result<RgbImage> image = decode_picture(
        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, golden_limits());
    if (!image) return image.status().with_context(path);
    picture.image = std::move(image).value();
    FATHOM_ASSIGN(picture.start, index_integer(golden, entry, "start"));
    FATHOM_ASSIGN(picture.span, index_integer(golden, entry, "span"));
    FATHOM_ASSIGN(const v41::ResizePlan plan,
                  v41::plan_resize(picture.image.width, picture.image.height, *config.vision));
    const std::vector<std::pair<const char*, int64_t>> fields = {
        {"patch_grid_w", plan.patch_columns},
        {"patch_grid_h", plan.patch_rows},
        {"token_grid_w", plan.token_columns},
        {"token_grid_h", plan.token_rows},
        {"span", plan.span_token_count()}};
    for (const auto& [field, value] : fields) {
      FATHOM_ASSIGN(const int64_t expected, index_integer(golden, entry, field));
      const auto got = static_cast<int32_t>(value);
      const auto want = static_cast<int32_t>(expected);
      plans->add(std::span(&got, 1), std::span(&want, 1), 1, path + " " + field);
    }
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

// The prompt as the model takes it: ids, and picture rows where the spans are.
Result<std::vector<InputToken>> place(const GoldenCase& golden, std::span<const TokenId> ids,
                                      std::span<const Picture> pictures,
                                      std::span<const PictureTokens> rows, int64_t hidden_size) {
  std::vector<InputToken> tokens;
  for (const TokenId id : ids) tokens.push_back({.token = id});
  for (size_t i = 0; i < pictures.size(); ++i) {
    const Picture& picture = pictures[i];
    if (picture.start < 0 || picture.start + picture.span > static_cast<int64_t>(ids.size()) ||
        picture.span != rows[i].count)
      return error(Code::kDataLoss,
                   "case {}: picture {} spans {} ids from {}, it has {} rows of {}", golden.name(),
                   i, picture.span, picture.start, rows[i].count, ids.size());
    for (int64_t r = 0; r < picture.span; ++r)
      tokens[static_cast<size_t>(picture.start + r)].embedding =
          rows[i].embeddings.data() + r * hidden_size;
  }
  return tokens;
}

struct PictureRun {
  const Subject& subject;
  GoldenCase& golden;
  std::span<const Picture> pictures;
  std::vector<TokenId> ids;
  std::vector<TokenId> decode_ids;
};

struct PictureLogits {
  std::vector<float> prompt;
  std::vector<float> decode;
};

// Pictures through the tower, the prompt through the model in pieces, then single steps.
Result<PictureLogits> run_once(const PictureRun& run, const std::string& policy, int64_t chunk,
                               Recorder* recorder) {
  const auto count = static_cast<int64_t>(run.ids.size() + run.decode_ids.size());
  FATHOM_ASSIGN(Runner runner, Runner::create(run.subject, run.golden, policy, recorder, count));
  std::vector<PictureTokens> rows;
  for (size_t i = 0; i < run.pictures.size(); ++i) {
    if (recorder != nullptr) recorder->set_picture(i);
    FATHOM_ASSIGN(PictureTokens tokens,
                  runner.model().encode_picture(run.pictures[i].image, nullptr));
    rows.push_back(std::move(tokens));
  }
  FATHOM_ASSIGN(const std::vector<InputToken> tokens,
                place(run.golden, run.ids, run.pictures, rows, runner.model().info().hidden_size));
  PictureLogits logits;
  FATHOM_ASSIGN(logits.prompt, runner.run(tokens, chunk));
  if (recorder != nullptr) recorder->set_prefix("decode.");
  FATHOM_ASSIGN(logits.decode, runner.run(run.decode_ids, 1));
  return logits;
}

// The kind of every position: −1 text, else its place in a span (§6.4).
Status compare_types(const PictureRun& run, Tally* tally) {
  FATHOM_ASSIGN(const std::vector<int32_t> want, run.golden.tokens("types"));
  std::vector<int32_t> got(run.ids.size(), -1);
  for (size_t i = 0; i < run.pictures.size(); ++i) {
    FATHOM_ASSIGN(const GoldenTensor* kinds, run.golden.take(fmt::format("picture{}.types", i)));
    for (size_t r = 0; r < kinds->ints.size(); ++r)
      if (const size_t at = static_cast<size_t>(run.pictures[i].start) + r; at < got.size())
        got[at] = kinds->ints[r];
  }
  tally->add(got, want, 1, "types");
  return Status::ok();
}

void add_logits(const PictureRun& run, const Arithmetic& arithmetic, const PictureLogits& logits,
                const std::string& run_name, Report* report) {
  const std::string suffix = arithmetic.suffix;
  for (const auto& [name, got] : {std::pair("logits" + suffix, &logits.prompt),
                                  std::pair("decode_logits" + suffix, &logits.decode)}) {
    if (got->empty()) continue;  // no decode steps
    Tally tally(name, arithmetic.logits_limit);
    const Result<const GoldenTensor*> want = run.golden.take(name);
    if (!want)
      tally.fail(want.status().message());
    else
      tally.add(*got, (*want)->floats, (*want)->cols, (*want)->dtype, name);
    report->add(run.golden.name(), run_name, {tally});
  }
}

}  // namespace

Status run_picture_case(const Subject& subject, const std::string& folder, GoldenCase& golden,
                        Report* report) {
  FATHOM_ASSIGN(const v41::Config config, config_of(subject, golden));
  if (!config.vision)
    return error(Code::kUnsupported, "case {}: the model has no vision tower", golden.name());
  std::vector<Tally> placement = {{"resize plan", Limit::kEqual}, {"types", Limit::kEqual}};
  FATHOM_ASSIGN(const std::vector<Picture> pictures,
                open_pictures(config, folder, golden, &placement[0]));
  PictureRun run{
      .subject = subject, .golden = golden, .pictures = pictures, .ids = {}, .decode_ids = {}};
  FATHOM_ASSIGN(run.ids, golden.tokens("ids"));
  if (golden.has("decode_ids") || golden.entry().contains("decode_ids")) {
    FATHOM_ASSIGN(run.decode_ids, golden.tokens("decode_ids"));
  }
  FATHOM_TRY(compare_types(run, &placement[1]));
  report->add(golden.name(), "placement", std::move(placement));

  for (const Arithmetic& arithmetic : arithmetics(golden)) {
    if (!golden.has(std::string("logits") + arithmetic.suffix)) continue;
    const bool is_smooth = arithmetic.logits_limit == Limit::kSmoothLogits;
    for (const int64_t chunk : {0, 7}) {
      if (chunk != 0 && !is_smooth) continue;
      FATHOM_ASSIGN(const PictureLogits logits, run_once(run, arithmetic.policy, chunk, nullptr));
      const std::string name = chunk == 0
                                   ? arithmetic.policy
                                   : fmt::format("{}, chunks of {}", arithmetic.policy, chunk);
      add_logits(run, arithmetic, logits, name, report);
    }
  }
  Recorder recorder(config.text, &golden, {.feeds = true, .is_o_judged = false});
  FATHOM_TRY(run_once(run, "reference", 0, &recorder).status());
  report->add(golden.name(), "reference, each step alone", recorder.finish());
  return Status::ok();
}

}  // namespace fathom::verify
