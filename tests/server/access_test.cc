#include "server/access.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace fathom::server {
namespace {

const std::string kKey = "sk-test-0123456789abcdef";

bool passes(const Access& access, const char* name, const std::string& value) {
  HttpRequest request;
  request.headers = {{name, value}};
  return access.has_valid_key(request);
}

TEST(Access, TakesAKeyInAnyOfItsHeaders) {
  const auto access = Access::make({.api_keys = {"another-key", kKey}});
  ASSERT_TRUE(access.is_ok());
  EXPECT_TRUE(passes(*access, "Authorization", "Bearer " + kKey));
  EXPECT_TRUE(passes(*access, "authorization", "bearer " + kKey));
  EXPECT_TRUE(passes(*access, "x-api-key", kKey));
  EXPECT_TRUE(passes(*access, "api-key", kKey));
  HttpRequest both;
  both.headers = {{"Authorization", "Bearer wrong"}, {"x-api-key", kKey}};
  EXPECT_TRUE(access->has_valid_key(both)) << "one valid is enough";
}

TEST(Access, RefusesEveryOtherCredential) {
  const auto access = Access::make({.api_keys = {kKey}});
  EXPECT_FALSE(access->has_valid_key({}));
  for (const std::string& value :
       {std::string(), std::string("Bearer "), std::string("Bearer  "), "Bearer " + kKey + "x",
        "Bearer " + kKey.substr(0, 10), "Bearer  " + kKey, "Basic " + kKey, kKey})
    EXPECT_FALSE(passes(*access, "Authorization", value)) << value;
}

TEST(Access, WithoutKeysAnyCredentialPasses) {
  const auto access = Access::make({});
  EXPECT_TRUE(access->has_valid_key({}));
  EXPECT_TRUE(passes(*access, "Authorization", "Bearer anything"));
}

TEST(Access, RefusesWeakKeysAndAnOpenOrigin) {
  for (const std::string& key :
       {std::string(), std::string("short"), std::string("with space!"), std::string(300, 'k')})
    EXPECT_FALSE(Access::make({.api_keys = {key}}).is_ok()) << key;
  EXPECT_FALSE(Access::make({.cors_origins = {"*"}}).is_ok());
}

TEST(Access, GuardsTheHostOnlyOnLoopback) {
  const auto local = Access::make({.allowed_hosts = {"fathom.lan"}});
  for (const char* host :
       {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:1", "fathom.lan:9"})
    EXPECT_TRUE(local->is_allowed_host(host)) << host;
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""})
    EXPECT_FALSE(local->is_allowed_host(host)) << host;
  EXPECT_TRUE(Access::make({.is_loopback_only = false})->is_allowed_host("any.example"));
}

TEST(Access, OriginsAreLoopbackOursOrListed) {
  const auto access = Access::make({.cors_origins = {"tauri://localhost"}});
  for (const char* origin : {"http://localhost:5173", "https://127.0.0.1", "http://[::1]:3000",
                             "tauri://localhost", "http://box.lan:8080"})
    EXPECT_TRUE(access->is_allowed_origin(origin, "box.lan:8080")) << origin;
  for (const char* origin : {"http://evil.example", "null", "http://localhost.evil.example",
                             "app://.", "file://", "tauri://localhost2"})
    EXPECT_FALSE(access->is_allowed_origin(origin, "box.lan:8080")) << origin;
}

class KeyFile : public ::testing::Test {
 protected:
  Result<std::vector<std::string>> read(const std::string& text) {
    path_ = ::testing::TempDir() + "keys.txt";
    std::ofstream(path_) << text;
    return read_key_file(path_);
  }
  ~KeyFile() override { std::remove(path_.c_str()); }
  std::string path_;
};

TEST_F(KeyFile, SkipsBlankLinesAndComments) {
  const auto keys = read("# ours\r\n\r\nkey-number-one\r\nkey-number-two");
  ASSERT_TRUE(keys.is_ok()) << keys.status().message();
  EXPECT_EQ(*keys, (std::vector<std::string>{"key-number-one", "key-number-two"}));
}

TEST_F(KeyFile, AnEmptyFileIsAnError) {
  EXPECT_FALSE(read("\n# nothing\n").is_ok());
  EXPECT_FALSE(read("good-key-one\nbad\n").is_ok());
  EXPECT_FALSE(read_key_file("/nonexistent/keys").is_ok());
}

}  // namespace
}  // namespace fathom::server
