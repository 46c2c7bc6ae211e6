// Broken tokenizer.json files (cases FMT-5): refused by name, and the good spellings of one file
// are the same tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/text/test_data.h"
#include "tests/text/tiny_tokenizer.h"
#include "text/tokenizer.h"

namespace fathom::text {
namespace {

using testing::HasSubstr;

TEST(TokenizerFile, BothSpellingsOfTheMergesGiveTheSameIds) {
  for (const MergeSpelling spelling : {MergeSpelling::kText, MergeSpelling::kPairs}) {
    Json json = tiny_tokenizer_json(spelling);
    json.erase("truncation");
    json.erase("padding");
    const auto tokenizer = Tokenizer::parse(json.dump());
    ASSERT_TRUE(tokenizer) << tokenizer.status().message();
    EXPECT_EQ(*(*tokenizer)->encode("hello world", AddedTokens::kIgnore),
              (std::vector<TokenId>{259, 264}));
    EXPECT_EQ(*(*tokenizer)->encode("hello<think>", AddedTokens::kMatch),
              (std::vector<TokenId>{259, 265}));
    EXPECT_EQ((*tokenizer)->token_spelling(264), "Ġworld");
    EXPECT_EQ((*tokenizer)->vocab_count(), 267);
    EXPECT_TRUE((*tokenizer)->is_special(266));
  }
}

struct BrokenFile {
  const char* name;
  std::function<void(Json*)> damage;
  const char* wanted;  // stands in the message
};

using Damage = std::function<void(Json*)>;

Damage vocab(std::string token, Json id) {
  return [=](Json* j) { (*j)["model"]["vocab"][token] = id; };
}
Damage merge(Json value) {
  return [=](Json* j) { (*j)["model"]["merges"].push_back(value); };
}
Damage model(const char* field, Json value) {
  return [=](Json* j) { (*j)["model"][field] = value; };
}
Damage added(const char* field, Json value) {
  return [=](Json* j) { (*j)["added_tokens"][0][field] = value; };
}
Damage top(const char* field, Json value) {
  return [=](Json* j) { (*j)[field] = value; };
}

// Files that contradict themselves.
std::vector<BrokenFile> broken_files() {
  return {
      {"merge of an unknown part", merge("h zq"), "\"zq\""},
      {"merge without a result", merge("l h"), "\"lh\""},
      {"merge of three parts", merge("h e l"), "merges[9] \"h e l\""},
      {"merge of one part", merge("he"), "merges[9]"},
      {"empty merge", merge(""), "merges[9]"},
      {"merge that is a number", merge(7), "merges[9] 7"},
      {"pair of one", merge(Json::array({"h"})), "merges[9]"},
      {"pair of numbers", merge({1, 2}), "merges[9]"},
      {"merge twice", merge("h e"), "twice"},
      {"merges missing", model("merges", nullptr), "model.merges"},
      {"id twice", vocab("he", 5), "id 5"},
      {"id negative", vocab("he", -1), "\"he\": id -1"},
      {"id huge", vocab("he", 4000000000), "\"he\": id 4000000000"},
      {"id beyond 64 bits", vocab("he", 18446744073709551615u), "\"he\""},
      {"id as text", vocab("he", "5"), "\"he\": id \"5\""},
      {"id broken", vocab("he", 5.5), "\"he\": id 5.5"},
      {"token without bytes", vocab("", 267), "0 bytes"},
      {"token outside the alphabet", vocab("語", 267), "\"語\""},
      {"token too long", vocab(std::string(5000, 'a'), 267), "5000 bytes"},
      {"hole in the ids", added("id", 200), "id 200"},
      {"byte missing", [](Json* j) { (*j)["model"]["vocab"].erase("æ"); }, "wanted 0 to 265"},
      {"byte renamed",
       [](Json* j) {
         (*j)["model"]["vocab"].erase("æ");
         (*j)["model"]["vocab"]["zz"] = 0xE6;
       },
       "0xE6"},
      {"added id collides", added("id", 3), "id 3"},
      {"added id of a word of another id", added("content", "hello"), "259 in model.vocab"},
      {"added content empty", added("content", ""), "added_tokens[0]"},
      {"added content missing", added("content", nullptr), "added_tokens[0]"},
      {"added content twice", added("content", "<end>"), "\"<end>\""},
      {"added tokens no array", top("added_tokens", 1), "added_tokens"},
      {"added tokens of numbers", top("added_tokens", {1, 2}), "added_tokens[0]"},
      {"model null", top("model", nullptr), "model"},
      {"vocabulary a list", model("vocab", Json::array()), "model.vocab"},
      {"vocabulary empty", model("vocab", Json::object()), "model.vocab"},
  };
}

// Sound files that ask for what Fathom does not do.
std::vector<BrokenFile> unsupported_files() {
  return {
      {"added token that strips", added("lstrip", true), "lstrip"},
      {"model unknown", model("type", "Quux"), "\"Quux\""},
      {"byte fallback", model("byte_fallback", true), "byte_fallback"},
      {"unknown token", model("unk_token", "<unk>"), "unk_token"},
      {"dropout", model("dropout", 0.1), "dropout"},
      {"normalizer", top("normalizer", {{"type", "NFC"}}), "normalizer"},
      {"post processor", top("post_processor", {{"type", "TemplateProcessing"}}), "post_processor"},
      {"decoder", top("decoder", {{"type", "WordPiece"}}), "decoder"},
      {"truncation", top("truncation", {{"max_length", 5}}), "truncation"},
      {"pre-tokenizer missing", top("pre_tokenizer", nullptr), "pre_tokenizer"},
      {"pre-tokenizer unknown", top("pre_tokenizer", {{"type", "Whitespace"}}), "Whitespace"},
      {"prefix space", [](Json* j) { (*j)["pre_tokenizer"]["add_prefix_space"] = true; },
       "add_prefix_space"},
      {"pattern unknown",
       top("pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"}, {"pattern", {{"Regex", "(a+)+b"}}}, {"behavior", "Isolated"}},
              {{"type", "ByteLevel"}, {"use_regex", false}}}}}),
       "(a+)+b"},
  };
}

TEST(TokenizerFile, RefusesBrokenFilesByName) {
  for (const auto& [files, code] : {std::pair(broken_files(), Code::kDataLoss),
                                    std::pair(unsupported_files(), Code::kUnsupported)})
    for (const BrokenFile& broken : files) {
      Json json = tiny_tokenizer_json();
      broken.damage(&json);
      const auto tokenizer = Tokenizer::parse(json.dump());
      ASSERT_FALSE(tokenizer) << broken.name;
      EXPECT_THAT(tokenizer.status().message(), HasSubstr(broken.wanted)) << broken.name;
      EXPECT_EQ(tokenizer.status().code(), code) << broken.name;
    }
}

TEST(TokenizerFile, RefusesEveryCutOfAFile) {
  const std::string whole = tiny_tokenizer_json().dump();
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_FALSE(Tokenizer::parse(whole.substr(0, size))) << size;
  EXPECT_FALSE(Tokenizer::parse(whole + "x"));
  EXPECT_FALSE(Tokenizer::parse("[" + whole + "]"));
}

TEST(TokenizerFile, RefusesAFileLargerThanItsLimits) {
  const std::string whole = tiny_tokenizer_json().dump();
  EXPECT_FALSE(Tokenizer::parse(whole, {.file_bytes_max = 100}));
  EXPECT_FALSE(Tokenizer::parse(whole, {.token_count_max = 266}));
  EXPECT_FALSE(Tokenizer::parse(whole, {.added_token_count_max = 1}));
  EXPECT_FALSE(Tokenizer::parse(whole, {.token_bytes_max = 6}));
  EXPECT_TRUE(Tokenizer::parse(whole, {.token_count_max = 267, .token_bytes_max = 7}));
}

// Cases TOK-2 on another tokenizer than the released one, which the goldens hold.
TEST(TokenizerFile, TextsComeBackByteForByte) {
  const auto tokenizer = Tokenizer::parse(tiny_tokenizer_json().dump());
  ASSERT_TRUE(tokenizer);
  for (const std::string text : {"hello world",
                                 " leading",
                                 "trailing ",
                                 "  two  spaces  ",
                                 "\t\ttabs",
                                 "a\r\nb\rc\n\n\nd",
                                 "\u00a0nbsp\u3000wide",
                                 "1234567890 3.14",
                                 "Führer",
                                 "Fu\u0308hrer",
                                 "你好世界",
                                 "안녕하세요",
                                 "\U0001f469\u200d\U0001f4bb",
                                 "don't I'LL we've 'S",
                                 "'s't're've'm'll'd",
                                 "<think>",
                                 "▁▁",
                                 "\x01\x7f\u0080",
                                 "x  5",
                                 "a  \n  b",
                                 "   "}) {
    const auto ids = (*tokenizer)->encode(text, AddedTokens::kIgnore);
    ASSERT_TRUE(ids);
    EXPECT_EQ((*tokenizer)->decode(*ids), text);
  }
}

// The pattern of GPT-2, by its pieces.
TEST(TokenizerFile, CutsAsTheByteLevelPatternDoes) {
  const auto tokenizer = Tokenizer::parse(tiny_tokenizer_json().dump());
  const auto pieces = [&](std::string_view text) {
    std::vector<std::string> out;
    for (const int64_t length : (*tokenizer)->piece_lengths(text)) {
      out.emplace_back(text.substr(0, length));
      text.remove_prefix(length);
    }
    return out;
  };
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces("I'll see 12345 dogs!?"), (Pieces{"I", "'ll", " see", " 12345", " dogs", "!?"}));
  EXPECT_EQ(pieces("a  b \n"), (Pieces{"a", " ", " b", " \n"}));
  EXPECT_EQ(pieces("it's'S"), (Pieces{"it", "'s", "'", "S"}));
}

}  // namespace
}  // namespace fathom::text
