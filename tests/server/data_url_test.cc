#include "server/data_url.h"

#include <gtest/gtest.h>

namespace fathom::server {
namespace {

const std::string kBytes = "hi" + std::string(3, '?') + ">";

std::string decoded(std::string_view url) {
  const auto bytes = decode_data_url(url, 1000);
  return bytes ? *bytes : "error: " + bytes.status().message();
}

TEST(DataUrl, DecodesEverySpelling) {
  EXPECT_EQ(decoded("data:image/png;base64,aGk/Pz8+"), kBytes);
  EXPECT_EQ(decoded("DATA:;BASE64,aGk_Pz8-"), kBytes) << "URL alphabet";
  EXPECT_EQ(decoded("data:;base64,aGk"), "hi") << "no padding";
  EXPECT_EQ(decoded("data:;base64,a\r\nG k="), "hi") << "white space";
  EXPECT_EQ(decoded("data:;base64,aGk%3D"), "hi") << "escaped";
  EXPECT_EQ(decoded(" \n data:;base64,aGk=\n"), "hi") << "space around";
  EXPECT_EQ(decoded("data:text/plain;charset=utf-8,h%69"), "hi") << "not base64";
}

TEST(DataUrl, RefusesDamage) {
  for (const char* url : {"data:;base64,", "data:;base64,a", "data:;base64,aG=k",
                          "data:;base64,a*bc", "data:image/png;base64", "data:"})
    EXPECT_EQ(decode_data_url(url, 1000).status().code(), Code::kInvalidArgument) << url;
}

TEST(DataUrl, SaysTheSameForEveryOtherScheme) {
  const std::string text = decode_data_url("http://127.0.0.1:1/x", 1000).status().message();
  for (const char* url :
       {"file:///etc/hostname", "/etc/hostname", "ftp://x", "FILE:///x", "", "aGk="}) {
    const Status status = decode_data_url(url, 1000).status();
    EXPECT_EQ(status.code(), Code::kUnsupported) << url;
    EXPECT_EQ(status.message(), text) << url;
  }
}

TEST(DataUrl, IsBounded) {
  EXPECT_TRUE(decode_data_url("data:;base64," + std::string(1332, 'A'), 999).is_ok());
  EXPECT_FALSE(decode_data_url("data:;base64," + std::string(1336, 'A'), 999).is_ok());
  EXPECT_FALSE(decode_data_url("data:;base64," + std::string(99999, 'A'), 999).is_ok());
}

}  // namespace
}  // namespace fathom::server
