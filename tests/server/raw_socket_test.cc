// Topic: Bytes that no well-meant client sends, written to the socket as they are. Each is answered
// in the API's form or cut off, and the server lives. What the framing refuses in a head alone is
// in http_head_test.cc; deadlines, keys and origins are in transport_test.cc.
#include <thread>

#include "tests/server/server_fixture.h"

namespace fathom {
namespace {

using namespace std::chrono_literals;
using fathom::testing::http_request;
using fathom::testing::HttpClient;
using fathom::testing::HttpReply;
using ::testing::HasSubstr;

class RawSocket : public fathom::testing::ServerTest {
 protected:
  // The reply has this status and a whole error object, and the server answers others.
  void expect_refused(const HttpReply& reply, int status) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const auto json = parse_json(reply.body);
    ASSERT_TRUE(json && json->contains("error")) << reply.body;
    for (const char* key : {"message", "type", "param", "code"})
      EXPECT_TRUE((*json)["error"].contains(key)) << key << " is missing in " << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
    EXPECT_EQ(ask("GET", "/health").status, 200);
  }

  static std::string chunked(std::string_view path, std::string_view body) {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n{}",
        path, body);
  }
};

TEST_F(RawSocket, OtherProtocolsAreToldThatThisIsHttp1) {
  start();
  const std::string tls_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (const std::string& bytes :
       {tls_hello, std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string("EHLO localhost\r\n"),
        std::string("GET /health\r\n\r\n"), std::string("\0\0\0\0", 4)}) {
    HttpClient client(http_->port());
    client.send(bytes);
    expect_refused(client.read_reply(5000ms), 400);
    EXPECT_TRUE(client.is_closed_within(1000ms));
  }
}

TEST_F(RawSocket, UpgradesAreAnsweredAsIfNotAskedFor) {
  start();
  for (const char* upgrade :
       {"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"})
    EXPECT_EQ(ask("GET", "/health", "", upgrade).status, 200);
}

TEST_F(RawSocket, BoundsOfTheHeadAreAnsweredInTheApisForm) {
  start();
  expect_refused(send_raw("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n"), 414);
  expect_refused(ask("GET", "/health", "", "A: " + std::string(33'000, 'a') + "\r\n"), 431);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  expect_refused(ask("GET", "/health", "", many), 431);
  expect_refused(send_raw("GET /health HTTP/1.1\r\nHost: localhost\r\nA: x" + std::string(1, '\0') +
                          "y\r\n\r\n"),
                 400);
}

TEST_F(RawSocket, MethodsThatAPathDoesNotTakeAreNamed) {
  start();
  for (const char* method : {"PUT", "DELETE", "PATCH", "TRACE", "BREW", "get", "OPTIONS"}) {
    const HttpReply reply = ask(method, "/v1/models");
    expect_refused(reply, 405);
    EXPECT_EQ(reply.headers.at("allow"), "GET, HEAD, OPTIONS") << method;
  }
  expect_refused(send_raw("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404);
  expect_refused(send_raw("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404);
}

TEST_F(RawSocket, HeadGivesTheHeadersAndNoBody) {
  start();
  HttpClient client(http_->port());
  for (const auto& [path, status] :
       {std::pair("/health", 200), std::pair("/v1/models", 200), std::pair("/v1/nothing", 404),
        std::pair("/v1/chat/completions", 405)}) {
    client.send(http_request("HEAD", path));
    const HttpReply reply = client.read_reply(5000ms, /*is_head=*/true);
    EXPECT_EQ(reply.status, status) << path;
    EXPECT_GT(std::stoi(reply.headers.at("content-length")), 0) << path;
  }
  client.send(http_request("GET", "/health"));
  EXPECT_THAT(client.read_reply(5000ms).body, HasSubstr("ok")) << "no stray body came before";
}

TEST_F(RawSocket, ATargetMayNameThisHost) {
  start();
  EXPECT_EQ(send_raw("GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            200);
  expect_refused(send_raw("GET http://localhost/v1/no HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404);
}

TEST_F(RawSocket, PathsAreComparedAsTheyAre) {
  start();
  for (const char* path : {"/../etc/passwd", "/%2e%2e/etc/passwd", "/..%2fetc/passwd", "/./health",
                           "//health", "/%68ealth", "/health%00", "/health;x=1", "/index.html/.."})
    expect_refused(ask("GET", path), 404);
  EXPECT_EQ(ask("GET", "/health?x=%00%ff#y").status, 200) << "queries are not looked at";
}

TEST_F(RawSocket, RequestsWithBodiesArePipelined) {
  start();
  HttpClient client(http_->port());
  const std::string text = R"({"content":"hi"})";
  client.send(
      http_request("POST", "/tokenize", text) +
      chunked("/tokenize", fmt::format("{:x}\r\n{}\r\n0\r\nA: b\r\n\r\n", text.size(), text)) +
      http_request("POST", "/v1/chat/completions", body("\"stream\":true")) +
      http_request("GET", "/health"));
  EXPECT_THAT(client.read_reply().body, HasSubstr("tokens"));
  EXPECT_THAT(client.read_reply().body, HasSubstr("tokens"));
  EXPECT_THAT(client.read_reply().body, HasSubstr("[DONE]"));
  EXPECT_THAT(client.read_reply().body, HasSubstr("ok"));
}

TEST_F(RawSocket, DamagedChunksAreRefused) {
  start();
  for (const char* bytes : {"zz\r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n",
                            "\r\n{}\r\n0\r\n\r\n", "2\n{}\r\n0\r\n\r\n", "2\r\n{}0\r\n\r\n",
                            "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n", "2 \x01\r\n{}\r\n0\r\n\r\n"}) {
    HttpClient client(http_->port());
    client.send(chunked("/tokenize", bytes));
    expect_refused(client.read_reply(5000ms), 400);
    EXPECT_TRUE(client.is_closed_within(1000ms)) << bytes;
  }
}

TEST_F(RawSocket, ABodyThatNeverEndsIsCut) {
  Options options;
  options.limits.body_pause_max = 300ms;
  start(options);
  expect_refused(send_raw(chunked("/tokenize", "2\r\n{}\r\n")), 408);
  HttpClient left(http_->port());
  left.send(chunked("/tokenize", "2\r\n{}\r\n"));
  left.shutdown_writing();
  EXPECT_TRUE(left.is_closed_within(2000ms)) << "the last chunk cannot come any more";
  EXPECT_EQ(ask("GET", "/health").status, 200);
}

TEST_F(RawSocket, TrailersAndExtensionsAreBounded) {
  start();
  const std::string endless(1 << 20, 'a');
  expect_refused(send_raw(chunked("/tokenize", "2\r\n{}\r\n0\r\nA: " + endless)), 400);
  expect_refused(send_raw(chunked("/tokenize", "2;" + endless)), 400);
  expect_refused(send_raw(chunked("/tokenize", "00000000000000000000" + endless)), 400);
}

TEST_F(RawSocket, ChunksTakeOnlyTheRoomThatTheyFill) {
  Options options;
  options.limits.bodies_bytes_max = options.limits.body_bytes_max;  // room for one of the largest
  start(options);
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(std::make_unique<HttpClient>(http_->port()));
    slow.back()->send(chunked("/tokenize", "2\r\n{\"\r\n"));
  }
  for (auto& client : slow) {
    client->send("e\r\ncontent\":\"hi\"}\r\n0\r\n\r\n");
    EXPECT_EQ(client->read_reply(5000ms).status, 200);
  }
}

TEST_F(RawSocket, ARequestThatTakesNoBodyCannotSendALargeOne) {
  start();
  const std::string get = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(send_raw(get + "Content-Length: 2\r\n\r\n{}").status, 200);
  expect_refused(send_raw(get + "Content-Length: 1000000\r\n\r\n"), 413);
  expect_refused(
      send_raw(get + "Transfer-Encoding: chunked\r\n\r\n10000\r\n" + std::string(0x10000, 'x')),
      413);
}

TEST_F(RawSocket, ContinueIsNeitherSaidToARefusalNorToHttp10) {
  Options options;
  options.limits.body_bytes_max = 100;
  start(options);
  const std::string expects = "Host: localhost\r\nExpect: 100-continue\r\nContent-Length: ";
  expect_refused(send_raw("POST /tokenize HTTP/1.1\r\n" + expects + "101\r\n\r\n"), 413);
  expect_refused(send_raw("POST /nothing HTTP/1.1\r\n" + expects + "2\r\n\r\n"), 404);
  EXPECT_EQ(
      send_raw("POST /tokenize HTTP/1.0\r\n" + expects + "16\r\n\r\n{\"content\":\"hi\"}").status,
      200);
}

TEST_F(RawSocket, AHeadInSingleBytesIsStillARequest) {
  start();
  HttpClient client(http_->port());
  for (const char c : http_request("GET", "/health"))
    ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  EXPECT_EQ(client.read_reply(5000ms).status, 200);
}

}  // namespace
}  // namespace fathom
