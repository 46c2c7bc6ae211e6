#include "memory/mapped_expert_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two layers of three experts whose matrices are 32 x 32: 512 bytes of codes, 32 scales.
class MappedExpertStoreTest : public testing::Test {
 protected:
  static constexpr int64_t kSide = 32;
  static constexpr int64_t kExperts = 3;

  MappedExpertStore make_store(bool is_larger_than_memory = false) {
    std::map<LayerId, MappedExpertLayer> layers;
    for (int32_t l : {0, 1}) {
      MappedExpertLayer layer{fmt::format("layers.{}.ffn.experts", l), {}};
      for (int64_t e = 0; e < kExperts; ++e)
        layer.experts.push_back({view(l, e, 0), view(l, e, 1), view(l, e, 2)});
      layers.emplace(LayerId{l}, std::move(layer));
    }
    return {std::move(layers), {}, is_larger_than_memory};
  }

  WeightView view(int32_t layer, int64_t expert, int64_t matrix) {
    const int64_t index = (layer * kExperts + expert) * 3 + matrix;
    return {DType::kI8, kSide, kSide, codes_.data() + index * kSide * kSide / 2,
            scales_.data() + index * kSide};
  }
  uint8_t& scale(int32_t layer, int64_t expert, int64_t matrix, int64_t row) {
    return scales_[static_cast<size_t>(((layer * kExperts + expert) * 3 + matrix) * kSide + row)];
  }

  std::vector<uint8_t> codes_ = std::vector<uint8_t>(18 * kSide * kSide / 2);
  std::vector<uint8_t> scales_ = std::vector<uint8_t>(18 * kSide, 127);
};

TEST_F(MappedExpertStoreTest, PinsGiveTheViewsOfTheExpertsAskedForInThatOrder) {
  MappedExpertStore store = make_store();
  const ExpertId wanted[] = {{2}, {0}};
  auto pins = store.pin(LayerId{1}, wanted);
  ASSERT_TRUE(pins.is_ok()) << pins.status().message();
  ASSERT_EQ(pins->count(), 2);
  EXPECT_EQ(pins->expert(0), ExpertId{2});
  const auto first = pins->wait(0);
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  EXPECT_EQ(first->w1.data, view(1, 2, 0).data);
  EXPECT_EQ(first->w3.data, view(1, 2, 1).data);
  EXPECT_EQ(first->w2.scales, view(1, 2, 2).scales);
  EXPECT_EQ(pins->wait(1)->w1.data, view(1, 0, 0).data);
}

TEST_F(MappedExpertStoreTest, ExpertsUsedBeforeComeFirst) {
  MappedExpertStore store = make_store();
  {
    const ExpertId one[] = {{1}};
    ASSERT_TRUE(store.pin(LayerId{0}, one)->wait(0).is_ok());
  }
  const ExpertId all[] = {{0}, {1}, {2}};
  const auto pins = store.pin(LayerId{0}, all);
  EXPECT_FALSE(pins->is_ready(0));
  EXPECT_TRUE(pins->is_ready(1));
  EXPECT_THAT(pins->ready_first(), ElementsAre(1, 0, 2));
}

TEST_F(MappedExpertStoreTest, ANanScaleIsNeverHandedOut) {
  scale(1, 2, 2, 5) = 255;
  MappedExpertStore store = make_store();
  const ExpertId wanted[] = {{0}, {2}};
  for (int attempt = 0; attempt < 2; ++attempt) {  // the failure is not remembered as success
    auto pins = store.pin(LayerId{1}, wanted);
    EXPECT_TRUE(pins->wait(0).is_ok());
    const auto bad = pins->wait(1);
    ASSERT_FALSE(bad.is_ok());
    EXPECT_EQ(bad.status().code(), Code::kDataLoss);
    EXPECT_THAT(bad.status().message(), HasSubstr("layers.1.ffn.experts.2.w2.scale"));
    EXPECT_THAT(bad.status().message(), HasSubstr("[5, 0]"));
  }
  EXPECT_FALSE(store.check_all().is_ok());
}

TEST_F(MappedExpertStoreTest, CheckAllFindsNothingInGoodExperts) {
  MappedExpertStore store = make_store();
  EXPECT_TRUE(store.check_all().is_ok());
}

TEST_F(MappedExpertStoreTest, PrefetchIsOnlyAdvice) {
  scale(0, 0, 0, 0) = 255;
  MappedExpertStore store = make_store(true);
  const ExpertId bad[] = {{0}};
  store.prefetch(LayerId{0}, bad, PrefetchClass::kLookahead);
  EXPECT_FALSE(store.pin(LayerId{0}, bad)->is_ready(0));
}

TEST_F(MappedExpertStoreTest, AnExpertThatDoesNotExistIsABug) {
  MappedExpertStore store = make_store();
  const ExpertId wanted[] = {{3}};
  EXPECT_DEATH((void)store.pin(LayerId{0}, wanted), "expert 3 of 3");
  EXPECT_DEATH((void)store.pin(LayerId{2}, wanted), "layer 2 has no experts");
}

}  // namespace
}  // namespace fathom
