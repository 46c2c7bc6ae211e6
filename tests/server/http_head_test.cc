#include "server/http_head.h"

#include <gtest/gtest.h>

namespace fathom::server {
namespace {

int status_of(const std::string& bytes, const HeadLimits& limits = {}) {
  const HeadCheck check = check_head(bytes, limits);
  return check.error ? check.error->status : check.head_bytes > 0 ? 200 : 0;
}

TEST(HttpHead, FindsTheEnd) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(check_head(head + "body", {}).head_bytes, static_cast<int64_t>(head.size()));
  for (size_t length = 0; length < head.size(); ++length)
    EXPECT_EQ(status_of(head.substr(0, length)), 0) << "incomplete at " << length;
}

TEST(HttpHead, RefusesWhatTwoParsersMayReadDifferently) {
  for (const char* bytes : {
           "GET / HTTP/1.1\nHost: a\r\n\r\n",             // bare LF
           "GET / HTTP/1.1\r\nHost: a\n\r\n",             //
           "GET / HTTP/1.1\r\nHost : a\r\n\r\n",          // space before the colon
           "GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n",  // continued line
           "GET / HTTP/1.1\r\n: a\r\n\r\n",               // no name
           "GET / HTTP/1.1\r\nHost\r\n\r\n",              // no colon
           "GET / HTTP/1.1\r\nHo st: a\r\n\r\n",          //
           "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",        // bare CR
           "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",          // empty target
           "GET / HTTP/2.0\r\nHost: a\r\n\r\n",           //
           "GET /\r\n\r\n",                               // HTTP/0.9
           "G@T / HTTP/1.1\r\n\r\n",                      //
           "\r\nGET / HTTP/1.1\r\n\r\n",                  //
       })
    EXPECT_EQ(status_of(bytes), 400) << bytes;
  EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\nA: x\0y\r\n\r\n", 26)), 400) << "NUL";
}

TEST(HttpHead, BoundsLineBlockAndCount) {
  EXPECT_EQ(status_of("GET /" + std::string(9000, 'a')), 414) << "before the line has ended";
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + std::string(33000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 200);
  EXPECT_EQ(status_of(many + "A: b\r\n\r\n"), 431);
}

HttpRequest with(std::vector<Header> headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  request.headers.emplace_back("Host", "a");
  return request;
}

TEST(BodyPlan, OneWayToSayHowLongABodyIs) {
  EXPECT_EQ(plan_body(with({{"content-length", "12"}})).plan.content_bytes, 12);
  EXPECT_TRUE(plan_body(with({{"Transfer-Encoding", "Chunked"}})).plan.is_chunked);
  EXPECT_FALSE(plan_body(with({})).error);
  for (const std::vector<Header>& headers : std::vector<std::vector<Header>>{
           {{"Content-Length", "1"}, {"Content-Length", "1"}},
           {{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}},
           {{"Transfer-Encoding", "gzip, chunked"}},
           {{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}},
           {{"Content-Length", "+1"}},
           {{"Content-Length", "-1"}},
           {{"Content-Length", ""}},
           {{"Content-Length", "0x10"}},
           {{"Content-Length", "99999999999999999999"}},
           {{"Host", "b"}}})
    EXPECT_TRUE(plan_body(with(headers)).error) << headers[0].first << ": " << headers[0].second;
}

TEST(TargetPath, LeavesOutHostAndQuery) {
  EXPECT_EQ(path_of_target("/v1/models?x=1#y"), "/v1/models");
  EXPECT_EQ(path_of_target("HTTP://evil.example/v1/models"), "/v1/models");
  EXPECT_EQ(path_of_target("http://evil.example"), "/");
  EXPECT_EQ(path_of_target("*"), "");
}

}  // namespace
}  // namespace fathom::server
