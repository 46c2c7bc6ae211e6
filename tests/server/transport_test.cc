// Topic: The wire: framing, limits, deadlines, keys, origins (HTTP API §15, T1 to T10).
#include <sys/resource.h>

#include <thread>

#include "tests/server/server_fixture.h"

namespace fathom {
namespace {

using namespace std::chrono_literals;
using fathom::testing::http_request;
using fathom::testing::HttpClient;
using fathom::testing::HttpReply;
using ::testing::HasSubstr;

class Transport : public fathom::testing::ServerTest {
 protected:
  static std::string error_code(const HttpReply& reply) {
    const auto json = parse_json(reply.body);
    if (!json || !json->contains("error")) return "no error object";
    const Json& error = (*json)["error"];
    for (const char* key : {"message", "type", "param", "code"})
      EXPECT_TRUE(error.contains(key)) << reply.body;
    return error["code"].is_string() ? error["code"].get<std::string>() : "";
  }
};

TEST_F(Transport, TakesAChunkedBody) {
  start();
  const std::string text = body("");
  HttpClient client(http_->port());
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  for (size_t i = 0; i < text.size(); i += 10) {
    const std::string part = text.substr(i, 10);
    client.send(fmt::format("{:x};note=x\r\n{}\r\n", part.size(), part));
  }
  client.send("0\r\nX-Trailer: dropped\r\n\r\n");
  const HttpReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_THAT(reply.body, HasSubstr("You said: hi"));
}

TEST_F(Transport, ClosesOnWhatCouldSmuggleARequest) {
  start();
  const std::string post = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n";
  for (const std::string& bytes :
       {post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        std::string("GET /health HTTP/1.1\nHost: localhost\r\n\r\n"),
        std::string("GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n"),
        std::string("GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
        std::string("GET /health HTTP/1.1\r\n\r\n"),
        post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        post + "Transfer-Encoding: chunked\r\n\r\n1\n{\r\n0\r\n\r\n",
        post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(300, 'e') +
            "\r\n{\r\n0\r\n\r\n"}) {
    HttpClient client(http_->port());
    client.send(bytes);
    const HttpReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 400) << bytes;
    EXPECT_EQ(reply.headers.count("connection"), 1u) << bytes;
    EXPECT_EQ(error_code(reply), "") << bytes;
    EXPECT_TRUE(client.is_closed_within(1000ms)) << bytes;
  }
}

TEST_F(Transport, CutsAHeaderTrickleWhileOthersAreServed) {
  Options options;
  options.limits.head_time_max = 600ms;
  start(options);
  HttpClient slow(http_->port());
  const std::string head = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
  int status = 0;
  for (size_t i = 0; i < 12 && slow.send(head.substr(i, 1)); ++i) {
    EXPECT_EQ(ask("GET", "/health").status, 200);
    std::this_thread::sleep_for(100ms);
  }
  status = slow.read_reply(2000ms).status;
  EXPECT_EQ(status, 408) << "the deadline is for the whole head, not for each read";
}

TEST_F(Transport, CutsABodyThatStops) {
  Options options;
  options.limits.body_pause_max = 300ms;
  start(options);
  EXPECT_EQ(
      send_raw("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{").status,
      408);
}

TEST_F(Transport, RefusesALargeBodyBeforeItIsSent) {
  start();
  HttpClient client(http_->port());
  client.send(
      fmt::format("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: {}\r\n\r\n",
                  (64 << 20) + 1));
  const HttpReply reply = client.read_reply(5000ms);
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.body, HasSubstr("request_too_large"));
}

TEST_F(Transport, RefusesAChunkedBodyThatGrowsTooLarge) {
  Options options;
  options.limits.body_bytes_max = 1000;
  start(options);
  const std::string part = fmt::format("320\r\n{}\r\n", std::string(800, 'x'));
  EXPECT_EQ(
      send_raw("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
               part + part)
          .status,
      413);
}

TEST_F(Transport, SaysContinueWhenAskedAndRefusesWithoutIt) {
  start({.access = {.api_keys = {"secret-key-1"}}});
  const std::string text = body("");
  const std::string head = fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: {}\r\n",
      text.size());
  HttpClient refused(http_->port());
  refused.send(head + "\r\n");
  EXPECT_EQ(refused.read_reply().status, 401);
  HttpClient client(http_->port());
  client.send(head + "x-api-key: secret-key-1\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 100);
  client.send(text);
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(Transport, AnswersHealthChecksBesideAFullHouse) {
  Options options;
  options.limits.connections_max = 512;
  options.limits.connections_per_peer_max = 512;
  rlimit files{};  // both ends of each connection are in this process
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  start(options);
  std::vector<std::unique_ptr<HttpClient>> idle;
  for (int i = 0; i < 540; ++i) idle.push_back(std::make_unique<HttpClient>(http_->port()));
  EXPECT_EQ(ask("GET", "/health").status, 200);
  EXPECT_EQ(ask("GET", "/v1/models").status, 503) << "only health checks";
  idle.clear();
  for (int i = 0; i < 100 && ask("GET", "/v1/models").status != 200; ++i)
    std::this_thread::sleep_for(20ms);
  EXPECT_EQ(ask("GET", "/v1/models").status, 200);
}

TEST_F(Transport, KeepsConnectionsAndPipelines) {
  start();
  HttpClient client(http_->port());
  client.send(http_request("GET", "/health") + http_request("GET", "/v1/models"));
  EXPECT_THAT(client.read_reply().body, HasSubstr("ok"));
  EXPECT_THAT(client.read_reply().body, HasSubstr("fake-model"));
  client.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.read_reply().headers["connection"], "close");
  EXPECT_TRUE(client.is_closed_within(1000ms));
}

TEST_F(Transport, StreamsToHttp10WithoutChunks) {
  start();
  const std::string text = body("\"stream\":true");
  const HttpReply reply = send_raw(fmt::format(
      "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", text.size(), text));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.count("transfer-encoding"), 0u);
  EXPECT_EQ(fathom::testing::events_of(reply.body).back(), "[DONE]");
}

TEST_F(Transport, RefusesForeignPagesBeforeAnyWork) {
  start();
  const HttpReply preflight =
      ask("OPTIONS", "/v1/chat/completions", "",
          "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n");
  EXPECT_EQ(preflight.status, 403);
  EXPECT_EQ(preflight.headers.count("access-control-allow-origin"), 0u);
  const std::string text = body("");
  const HttpReply post = send_raw(fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
      "Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{}",
      text.size(), text));
  EXPECT_EQ(post.status, 403);
  EXPECT_EQ(error_code(post), "forbidden_origin");
  const HttpReply plain = send_raw(fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:1\r\n"
      "Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{}",
      text.size(), text));
  EXPECT_EQ(plain.status, 415);
  EXPECT_EQ(script_->forward_count, 0);
}

TEST_F(Transport, LetsPagesOfThisMachineAsk) {
  start({.access = {.api_keys = {"secret-key-1"}}});
  const HttpReply preflight =
      ask("OPTIONS", "/v1/chat/completions", "",
          "Origin: http://localhost:5173\r\nAccess-Control-Request-Method: POST\r\n"
          "Access-Control-Request-Headers: authorization,x-stainless-os\r\n");
  EXPECT_EQ(preflight.status, 204) << "no key is needed";
  EXPECT_EQ(preflight.headers.at("access-control-allow-origin"), "http://localhost:5173");
  EXPECT_EQ(preflight.headers.at("access-control-allow-headers"), "authorization,x-stainless-os");
  EXPECT_EQ(preflight.headers.count("access-control-allow-credentials"), 0u);
  const HttpReply refused =
      ask("POST", "/v1/chat/completions", body(""), "Origin: http://localhost:5173\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.at("access-control-allow-origin"), "http://localhost:5173")
      << "the page can read why";
}

TEST_F(Transport, RefusesAForeignHost) {
  start();
  const HttpReply reply = send_raw("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(error_code(reply), "forbidden_host");
  EXPECT_EQ(
      send_raw("GET http://evil.example/health HTTP/1.1\r\nHost: evil.example\r\n\r\n").status,
      403);
}

TEST_F(Transport, WantsAKeyEverywhereButOnHealth) {
  start({.access = {.api_keys = {"secret-key-1"}}});
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
        "/v1/embeddings", "/chat/completions", "/tokenize", "/detokenize", "/apply-template",
        "/slots", "/props", "/metrics", "//v1/chat/completions", "/v1/chat/completions/",
        "/V1/chat/completions", "/v1/../v1/chat/completions", "/v1%2fchat/completions"}) {
    const HttpReply reply = ask("POST", path, body(""));
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.headers.count("www-authenticate"), 1u);
  }
  EXPECT_EQ(ask("GET", "/v1/models").status, 401);
  EXPECT_EQ(ask("GET", "/health").status, 200);
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
  EXPECT_EQ(ask("POST", "/v1/chat/completions?api_key=secret-key-1", body("")).status, 401);
  EXPECT_EQ(ask("GET", "/v1/models", "", "Authorization: Bearer secret-key-1\r\n").status, 200);
}

TEST_F(Transport, EveryErrorHasItsJsonBody) {
  start();
  EXPECT_EQ(error_code(ask("GET", "/v1/nothing")), "unknown_url");
  EXPECT_EQ(error_code(ask("POST", "/v1/embeddings", "{}")), "unknown_url");
  EXPECT_EQ(error_code(ask("POST", "/v1/v1/chat/completions", "{}")), "unknown_url");
  const HttpReply method = ask("GET", "/v1/chat/completions");
  EXPECT_EQ(method.status, 405);
  EXPECT_THAT(method.headers.at("allow"), HasSubstr("POST"));
  EXPECT_EQ(error_code(method), "method_not_allowed");
  EXPECT_EQ(ask("POST", "/tokenize", "{}", "Content-Encoding: gzip\r\n").status, 415);
  EXPECT_EQ(ask("GET", "/" + std::string(9000, 'a')).status, 414);
  EXPECT_EQ(ask("GET", "/health", "", "A: " + std::string(33000, 'a') + "\r\n").status, 431);
  EXPECT_EQ(error_code(ask("POST", "/v1/chat/completions", "{:")), "invalid_json");
}

TEST_F(Transport, EchoesOnlyHarmlessRequestIds) {
  start();
  EXPECT_EQ(ask("GET", "/health", "", "X-Request-Id: mine-1\r\n").headers.at("x-request-id"),
            "mine-1");
  EXPECT_THAT(ask("GET", "/health", "", "X-Request-Id: with space\r\n").headers.at("x-request-id"),
              ::testing::StartsWith("req_"));
  EXPECT_EQ(ask("GET", "/health").headers.at("x-content-type-options"), "nosniff");
}

TEST_F(Transport, ServesThePageWithItsPolicy) {
  start();
  const HttpReply page = ask("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.headers.at("content-type"), HasSubstr("text/html"));
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("default-src 'none'"));
  const HttpReply head = ask("HEAD", "/");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(page.body.size()));
  EXPECT_EQ(ask("GET", "/../src/server/api.cc").status, 404);
}

TEST_F(Transport, SaysThatTheModelLoads) {
  Options options;
  options.has_engine = false;
  start(options);
  const HttpReply health = ask("GET", "/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(error_code(health), "model_loading");
  EXPECT_EQ(health.headers.count("retry-after"), 1u);
  EXPECT_EQ(ask("GET", "/v1/models").status, 200);
  EXPECT_EQ(ask("POST", "/v1/chat/completions", body("")).status, 503);
  api_->set_engine(engine_.get());
  EXPECT_EQ(ask("GET", "/health").status, 200);
}

}  // namespace
}  // namespace fathom
