#include "io/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using testing::HasSubstr;

TEST(ShardIndex, ItemsAreSortedAndPointToTheirShard) {
  const auto index = parse_shard_index(
      R"({"metadata": {"total_size": 36}, "weight_map": {"z": "b.st", "a": "b.st", "m": "a.st"}})");
  ASSERT_TRUE(index.is_ok()) << index.status().message();
  EXPECT_THAT(index->shards, testing::ElementsAre("a.st", "b.st"));
  ASSERT_EQ(index->items.size(), 3U);
  EXPECT_EQ(index->items[0].tensor, "a");
  EXPECT_EQ(index->items[0].shard, 1);
  EXPECT_EQ(index->items[1].tensor, "m");
  EXPECT_EQ(index->items[1].shard, 0);
  EXPECT_EQ(index->total_size, 36);
}

TEST(ShardIndex, TotalSizeMayBeAbsentOrOdd) {
  EXPECT_FALSE(parse_shard_index(R"({"weight_map": {}})")->total_size.has_value());
  EXPECT_FALSE(parse_shard_index(R"({"weight_map": {}, "metadata": {"total_size": -1}})")
                   ->total_size.has_value());
}

TEST(ShardIndex, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name :
       {"../a.st", "/a.st", "sub/a.st", "..", "", ".hidden", "a\\\\b", "a\\u0000"}) {
    const auto index =
        parse_shard_index(std::string(R"({"weight_map": {"x": ")") + name + R"("}})");
    ASSERT_FALSE(index.is_ok()) << name;
    EXPECT_THAT(index.status().message(), HasSubstr("weight_map \"x\"")) << name;
  }
}

TEST(ShardIndex, WhatIsNoIndexIsRefused) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {"x": 1}})",
        R"({"weight_map": {"x": "a", "x": "b"}})"})
    EXPECT_FALSE(parse_shard_index(text).is_ok()) << text;
}

}  // namespace
}  // namespace fathom
