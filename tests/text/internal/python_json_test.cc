// Every expectation here is what Python 3.11 prints: json.dumps(json.loads(x), ensure_ascii=False).
#include "text/internal/python_json.h"

#include <gtest/gtest.h>

namespace fathom::text::internal {
namespace {

std::string rewritten(std::string_view json) {
  const auto text = to_python_json(json);
  EXPECT_TRUE(text) << json << ": " << text.status().message();
  return text ? *text : "";
}

TEST(PythonJson, PrintsNumbersAsPythonDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"1.50", "1.5"},
      {"1.0", "1.0"},
      {"-0.0", "-0.0"},
      {"1e2", "100.0"},
      {"1E5", "100000.0"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1.5e-7", "1.5e-07"},
      {"1e15", "1000000000000000.0"},
      {"1e16", "1e+16"},
      {"123456789012345680.0", "1.2345678901234568e+17"},
      {"1e300", "1e+300"},
      {"5e-324", "5e-324"},
      {"0.1", "0.1"},
      {"3.141592653589793238", "3.141592653589793"},
  };
  for (const auto& [json, want] : cases) EXPECT_EQ(rewritten(json), want);
}

TEST(PythonJson, EscapesOnlyWhatPythonEscapes) {
  EXPECT_EQ(rewritten(R"("\u00e9\/\ud83e\udd80\u2028\u007f")"), "\"é/🦀\u2028\x7f\"");
  EXPECT_EQ(rewritten(R"("\u0000\u001f\b\f\n\r\t\"\\")"), R"("\u0000\u001f\b\f\n\r\t\"\\")");
}

TEST(PythonJson, KeepsTheOrderOfNamesAndTheirLastValue) {
  EXPECT_EQ(rewritten(R"({"z":1,"a":{"y":[],"b":{}},"z":[1,2]})"),
            R"({"z": [1, 2], "a": {"y": [], "b": {}}})");
  EXPECT_EQ(rewritten(" [ true , false,null ,\n\"x\" ] "), R"([true, false, null, "x"])");
  EXPECT_EQ(rewritten(R"({"":""})"), R"({"": ""})");
}

TEST(PythonJson, RefusesWhatIsNoJson) {
  for (const char* text :
       {"", "{", "{\"a\"}", "[1,]", "nul", "1 2", "\"\\x\"", "\"\xFF\"", "1e999"})
    EXPECT_FALSE(to_python_json(text)) << text;
  EXPECT_FALSE(to_python_json(std::string(1000, '[') + std::string(1000, ']')));
  EXPECT_FALSE(object_members("[1]"));
}

TEST(PythonJson, SplitsAnObjectIntoStringsAndOthers) {
  const auto members = object_members(R"({"s":"a\nb","n":1.0,"o":{"k":"v"}})");
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 3u);
  EXPECT_TRUE((*members)[0].is_string);
  EXPECT_EQ((*members)[0].value, "a\nb");
  EXPECT_FALSE((*members)[1].is_string);
  EXPECT_EQ((*members)[1].value, "1.0");
  EXPECT_EQ((*members)[2].value, R"({"k": "v"})");
}

TEST(PythonJson, UnwrapsAStringAndNothingElse) {
  EXPECT_EQ(unwrap_json_string(R"("{\"a\": 1}")"), R"({"a": 1})");
  EXPECT_EQ(unwrap_json_string(R"({"a": 1})"), R"({"a": 1})");
  EXPECT_EQ(unwrap_json_string("{\"cut"), "{\"cut");
}

}  // namespace
}  // namespace fathom::text::internal
