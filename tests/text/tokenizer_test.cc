// Against tests/golden/tokenizer: what the reference library makes of the released files.
#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "tests/text/test_data.h"
#include "text/stream_decoder.h"

namespace fathom::text {
namespace {

using Ids = std::vector<TokenId>;

Ids encode(const Tokenizer& tokenizer, std::string_view text, AddedTokens added) {
  auto ids = tokenizer.encode(text, added);
  EXPECT_TRUE(ids) << ids.status().message();
  return ids ? std::move(ids.value()) : Ids();
}

std::string joined_bytes(const Tokenizer& tokenizer, const Ids& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.token_bytes(id);
  return bytes;
}

// The value of `name`, or of `otherwise` when the golden leaves it out as equal.
Ids golden_ids(const Json& row, const char* name, const char* otherwise) {
  return row.value(name, row.at(otherwise)).get<Ids>();
}

TEST(Tokenizer, EncodesEveryGoldenText) {
  const Json golden = read_golden("tokenizer/encodings.json");
  int count = 0;
  for (const Json& row : golden.at("cases")) {
    SCOPED_TRACE(row.at("n").dump() + " " + row.at("group").dump());
    const auto text = row.at("text").get<std::string>();
    const Ids matched = golden_ids(row, "ids", "ids");
    EXPECT_EQ(encode(released_tokenizer(), text, AddedTokens::kMatch), matched);
    EXPECT_EQ(encode(released_tokenizer(), text, AddedTokens::kIgnore),
              golden_ids(row, "plain", "ids"));
    EXPECT_EQ(encode(released_tokenizer("v4"), text, AddedTokens::kMatch),
              golden_ids(row, "v4", "ids"));
    EXPECT_EQ(released_tokenizer().piece_lengths(text),
              row.at("pieces").get<std::vector<int64_t>>());
    EXPECT_EQ(joined_bytes(released_tokenizer(), matched), text);
    ++count;
  }
  EXPECT_EQ(count, 517);
}

TEST(Tokenizer, DecodesEveryGoldenList) {
  const Json golden = read_golden("tokenizer/decodings.json");
  int count = 0;
  for (const Json& row : golden.at("cases")) {
    SCOPED_TRACE(row.at("name").dump());
    const auto ids = row.at("ids").get<Ids>();
    const auto text = row.at("text").get<std::string>();
    EXPECT_EQ(released_tokenizer().decode(ids), text);
    EXPECT_EQ(released_tokenizer().decode(ids, true), row.value("text_without_special", text));
    StreamDecoder decoder(released_tokenizer());
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(decoder.push(ids[i]), row.at("stream").at(i).get<std::string>()) << "step " << i;
    EXPECT_EQ(decoder.flush(), row.at("flush").get<std::string>());
    ++count;
  }
  EXPECT_EQ(count, 80);
}

TEST(Tokenizer, HasTheReleasedTables) {
  const Json tables = read_golden("tokenizer/tables.json");
  const Tokenizer& tokenizer = released_tokenizer();
  EXPECT_EQ(tokenizer.file_sha256(), tables.at("v41_tokenizer_sha256"));
  EXPECT_EQ(released_tokenizer("v4").file_sha256(), tables.at("v4_tokenizer_sha256"));
  EXPECT_EQ(tokenizer.vocab_count(), tables.at("total").get<int64_t>());
  EXPECT_EQ(tokenizer.merges_sha256(), tables.at("merges_sha256").at("sha256"));

  std::string table;
  int64_t special_count = 0;
  for (TokenId id = 0; tokenizer.contains(id); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    for (int shift = 0; shift < 32; shift += 8) table += static_cast<char>(bytes.size() >> shift);
    table += bytes;
    special_count += tokenizer.is_special(id);
  }
  EXPECT_EQ(sha256_hex(table), tables.at("token_bytes_sha256").at("sha256"));
  EXPECT_EQ(special_count, tables.at("special_count").get<int64_t>());
  for (const Json& row : tables.at("named_added_tokens")) {
    const auto content = row.at(1).get<std::string>();
    EXPECT_EQ(tokenizer.added_token(content), row.at(0).get<TokenId>()) << content;
    EXPECT_EQ(tokenizer.is_special(row.at(0)), row.at(2) == "special") << content;
  }
}

TEST(Tokenizer, JoinsNeighbouringTextBeforeItIsCutIntoPieces) {
  const std::vector<Segment> segments = {{"Be terse.", false}, {"\n\n## Tools", true}};
  const auto ids = released_tokenizer().encode(segments);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, encode(released_tokenizer(), "Be terse.\n\n## Tools", AddedTokens::kIgnore));
  EXPECT_NE(std::find(ids->begin(), ids->end(), 339), ids->end()) << "339 is \".\\n\\n\"";
}

TEST(Tokenizer, MatchesAddedTokensOnlyInTrustedText) {
  const std::vector<Segment> segments = {
      {"<｜User｜>", true}, {"</think>", false}, {"</th", true}, {"ink>", true}};
  const auto ids = released_tokenizer().encode(segments);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, (Ids{128803, 1718, 37947, 32, 128822}));
}

TEST(Tokenizer, DoesNotMatchAcrossABorderOfTrust) {
  const std::vector<Segment> segments = {{"</th", true}, {"ink>", false}, {"<think", true}};
  const auto ids = released_tokenizer().encode(segments);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, encode(released_tokenizer(), "</think><think", AddedTokens::kIgnore));
}

// One piece of a megabyte: with quadratic merging none of these would end within the test's limit.
TEST(Tokenizer, EndsOnAMegabyteOfOneCharacter) {
  for (const std::string unit : {"a", " ", "\n", "-", "7", "你", "\x80"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    EXPECT_EQ(joined_bytes(released_tokenizer(),
                           encode(released_tokenizer(), text, AddedTokens::kIgnore)),
              text);
  }
}

TEST(Tokenizer, EndsOnAMegabyteOfTokenBeginnings) {
  std::string text;
  while (text.size() < 1'000'000) text += "<｜place▁holder▁no▁";
  EXPECT_EQ(
      joined_bytes(released_tokenizer(), encode(released_tokenizer(), text, AddedTokens::kMatch)),
      text);
}

TEST(Tokenizer, PassesIllFormedUtf8ThroughAsBytes) {
  for (const std::string text : {"\xFF", "a\xC3", "\xED\xA0\x80x", "\xF0\x9F\x98", "\xC0\xAF \xFE"})
    EXPECT_EQ(
        joined_bytes(released_tokenizer(), encode(released_tokenizer(), text, AddedTokens::kMatch)),
        text);
}

TEST(Tokenizer, LoadsTheWordListsOfTheGoldenCheckpoints) {
  const auto tokenizer = stub_tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocab_count(), 512);
  EXPECT_EQ(encode(*tokenizer, "w0 W0w12 W255", AddedTokens::kMatch), (Ids{0, 1, 24, 511}));
  EXPECT_EQ(tokenizer->decode(Ids{0, 1, 24}), "w0 W0w12");
  const auto missing = tokenizer->encode("hello", AddedTokens::kIgnore);
  EXPECT_EQ(missing.status().code(), Code::kInvalidArgument);
  EXPECT_NE(missing.status().message().find("0x68"), std::string::npos);
}

TEST(Tokenizer, NamesAFileThatIsMissing) {
  const auto tokenizer = Tokenizer::load("/nowhere/tokenizer.json");
  EXPECT_EQ(tokenizer.status().code(), Code::kNotFound);
  EXPECT_NE(tokenizer.status().message().find("/nowhere/tokenizer.json"), std::string::npos);
}

TEST(Tokenizer, RefusesFoldersAndPipesByName) {
  const std::string pipe = testing::TempDir() + "tokenizer_pipe";
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, testing::TempDir()}) {
    const auto tokenizer = Tokenizer::load(path);
    EXPECT_EQ(tokenizer.status().code(), Code::kDataLoss);
    EXPECT_NE(tokenizer.status().message().find("wanted a regular file"), std::string::npos);
  }
}

}  // namespace
}  // namespace fathom::text
