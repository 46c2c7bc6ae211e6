// Topic: what is wrong with a golden folder is a FAIL or an error, never a pass.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "io/read_file.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "verify/verify.h"

namespace fathom::verify {
namespace {

namespace fs = std::filesystem;

struct OwnedTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  void set_f32(size_t i, float value) { std::memcpy(&bytes.at(4 * i), &value, sizeof value); }
};
using Tensors = std::vector<OwnedTensor>;

// A folder with one case of a committed golden, to be damaged; the model is the committed one.
class DamagedGolden : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  void copy_case(const std::string& golden, const std::string& name) {
    source_ = std::string(FATHOM_SOURCE_DIR) + "/tests/golden/" + golden;
    folder_ = fs::temp_directory_path() /
              ("fathom_damaged_golden_" + std::to_string(::getpid()) +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    name_ = name;
    const Result<std::string> text = read_file(source_ + "/index.json", 64 << 20);
    ASSERT_TRUE(text.is_ok()) << text.status().message();
    index_ = {{"cases", {{name, (*parse_json(*text))["cases"][name]}}}};
    write_index();
    for (const char* ending : {".safetensors", ".png"})
      if (const std::string file = name + ending; fs::exists(source_ + "/" + file))
        fs::copy(source_ + "/" + file, folder_ / file);
    fs::permissions(shard(), fs::perms::owner_write, fs::perm_options::add);
  }

  fs::path shard() const { return folder_ / (name_ + ".safetensors"); }
  void write_index() { std::ofstream(folder_ / "index.json") << index_.dump(); }

  void edit(const std::function<void(Tensors*)>& change) {
    Tensors tensors;
    {
      auto file = SafetensorsFile::open(shard());
      ASSERT_TRUE(file.is_ok()) << file.status().message();
      for (const TensorEntry& entry : (*file)->tensors()) {
        const std::byte* data = (*file)->data(entry);
        tensors.push_back({entry.name, entry.dtype, entry.shape, {data, data + entry.bytes}});
      }
    }
    change(&tensors);
    std::vector<TensorToWrite> out;
    for (const OwnedTensor& t : tensors)
      out.push_back({.name = t.name, .dtype = t.dtype, .shape = t.shape, .data = t.bytes});
    const Status status = write_safetensors(shard(), out);
    ASSERT_TRUE(status.is_ok()) << status.message();
  }

  Result<Report> run() {
    ThreadPool pool(2);
    const VerifyOptions options = {.model = source_ + "/checkpoint",
                                   .golden = folder_,
                                   .cases = "",
                                   .isa = kernels::available_isas().back(),
                                   .progress = nullptr};
    return verify(options, pool);
  }

  // The report fails, and a line that fails says `words`.
  void expect_fail(const std::string& words) {
    const Result<Report> report = run();
    ASSERT_TRUE(report.is_ok()) << report.status().message();
    EXPECT_FALSE(report->passed());
    bool is_said = false;
    for (const ReportLine& line : report->lines)
      if (line.tally.verdict() == Verdict::kFail)
        is_said |=
            (line.tally.name() + ": " + line.tally.failure()).find(words) < std::string::npos;
    EXPECT_TRUE(is_said) << words << " in no failing line of\n" << report->text();
  }

  std::string source_;
  fs::path folder_;
  std::string name_;
  Json index_;
};

OwnedTensor& named(Tensors* tensors, const std::string& name) {
  for (OwnedTensor& tensor : *tensors)
    if (tensor.name == name) return tensor;
  ADD_FAILURE() << name << " is not in the golden";
  return tensors->front();
}

TEST_F(DamagedGolden, AnUnchangedCopyPasses) {
  copy_case("v41-oracle-a", "prefill-n041");
  edit([](Tensors*) {});
  const Result<Report> report = run();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_TRUE(report->passed()) << report->text();
}

TEST_F(DamagedGolden, OneChangedNumberFails) {
  copy_case("v41-oracle-a", "prefill-n041");
  edit([](Tensors* tensors) {
    OwnedTensor& logits = named(tensors, "logits_smooth");
    float value = 0;
    std::memcpy(&value, &logits.bytes.at(4000), sizeof value);
    logits.set_f32(1000, value + 2e-4F);  // twice the limit of a smooth logit
  });
  expect_fail("logits_smooth");
}

TEST_F(DamagedGolden, ANanInTheGoldenFailsWhereverItStands) {
  copy_case("v41-oracle-a", "prefill-n041");
  edit([](Tensors* tensors) { named(tensors, "logits_f32").set_f32(7, NAN); });  // only printed
  expect_fail("logits_f32");
}

TEST_F(DamagedGolden, ATensorThatNobodyProducesFails) {
  copy_case("v41-oracle-a", "prefill-n041");
  edit([](Tensors* tensors) {
    OwnedTensor extra = named(tensors, "logits_smooth");
    extra.name = "layers.0.no_such_tap";
    tensors->push_back(extra);
  });
  expect_fail("named in the golden and not produced");
}

TEST_F(DamagedGolden, ACaseWithNothingToCompareFails) {
  copy_case("v41-oracle-a", "prefill-n041");
  edit([](Tensors* tensors) {
    std::erase_if(*tensors, [](const OwnedTensor& t) { return t.name != "ids"; });
  });
  expect_fail("holds nothing that is compared");
}

TEST_F(DamagedGolden, ATruncatedFileFailsByName) {
  copy_case("v41-oracle-a", "prefill-n041");
  fs::resize_file(shard(), fs::file_size(shard()) / 2);
  expect_fail("prefill-n041.safetensors");
}

TEST_F(DamagedGolden, AKindThatNobodyKnowsFails) {
  copy_case("v41-oracle-a", "prefill-n041");
  index_["cases"]["second"] = index_["cases"]["prefill-n041"];
  index_["cases"]["second"]["kind"] = "prophecy";
  write_index();
  expect_fail("prophecy");
}

TEST_F(DamagedGolden, AnIndexWithoutCasesDoesNotPass) {
  copy_case("v41-oracle-a", "prefill-n041");
  index_["cases"] = Json::object();
  write_index();
  const Result<Report> report = run();
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_FALSE(report->passed());
}

TEST_F(DamagedGolden, AnEmptyFolderIsAnError) {
  copy_case("v41-oracle-a", "prefill-n041");
  fs::remove_all(folder_);
  fs::create_directories(folder_);
  EXPECT_EQ(run().status().code(), Code::kNotFound);
}

// picture-5 of v41-tiny has two pictures, and its taps of both pass (Verify.TinyGoldensPass).
TEST_F(DamagedGolden, TapsOfAPictureThatThePromptLacksFail) {
  copy_case("v41-tiny", "picture-1");
  edit([](Tensors* tensors) {
    OwnedTensor second = named(tensors, "picture0.vit_out");
    second.name = "picture1.vit_out";
    tensors->push_back(second);
  });
  expect_fail("picture1.vit_out");
}

}  // namespace
}  // namespace fathom::verify
