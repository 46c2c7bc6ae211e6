// A whole server on a free port over a scripted model.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/json.h"
#include "server/api.h"
#include "server/http_server.h"
#include "tests/engine/fake_model.h"
#include "tests/server/http_client.h"

namespace fathom::testing {

struct ServerTestOptions {
  EngineOptions engine = {};
  server::AccessOptions access = {};
  server::ApiOptions api = {};
  server::ConnectionLimits limits = {};
  int64_t context_tokens = 4096;
  bool has_engine = true;
};

class ServerTest : public ::testing::Test {
 protected:
  using Options = ServerTestOptions;

  void start(Options options = {}) {
    Fake fake = make_fake(options.context_tokens);
    script_ = fake.script;
    engine_ = std::make_unique<Engine>(std::move(fake.loaded), options.engine);
    auto access = server::Access::make(options.access);
    FATHOM_CHECK(access.is_ok(), "{}", access.status().message());
    options.api.model_name = "fake-model";
    options.api.thinks_by_default = false;
    api_ = std::make_unique<server::Api>(options.api, std::move(*access));
    if (options.has_engine) api_->set_engine(engine_.get());
    auto http = server::HttpServer::start({"127.0.0.1", 0, options.limits}, *api_);
    FATHOM_CHECK(http.is_ok(), "{}", http.status().message());
    http_ = std::move(*http);
  }

  ~ServerTest() override {
    http_.reset();
    api_.reset();
    engine_.reset();
  }

  HttpReply ask(std::string_view method, std::string_view path, std::string_view body = "",
                std::string_view headers = "") {
    HttpClient client(http_->port());
    client.send(http_request(method, path, body, headers));
    return client.read_reply(std::chrono::seconds(20), method == "HEAD");
  }
  // The reply to bytes that are sent as they are.
  HttpReply send_raw(std::string_view bytes) {
    HttpClient client(http_->port());
    client.send(bytes);
    return client.read_reply();
  }
  HttpReply chat(const std::string& fields) {
    return ask("POST", "/v1/chat/completions", body(fields));
  }

  // A chat body; `fields` come after the messages.
  static std::string body(const std::string& fields, const std::string& user = "hi") {
    return R"({"messages":[{"role":"user","content":)" + Json(user).dump() + "}]" +
           (fields.empty() ? "" : "," + fields) + "}";
  }

  // True when the engine has nothing to do within the time.
  bool is_free_within(std::chrono::milliseconds time) { return engine_->wait_until_idle(time); }

  std::shared_ptr<FakeScript> script_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<server::Api> api_;
  std::unique_ptr<server::HttpServer> http_;
};

// The JSON payloads of an event stream; "[DONE]" becomes a JSON string.
inline std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  size_t begin = 0;
  for (size_t end; (end = body.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    const std::string event = body.substr(begin, end - begin);
    if (event.rfind("data: ", 0) != 0) continue;
    const std::string payload = event.substr(6);
    auto json = payload == "[DONE]" ? Result<Json>(Json("[DONE]")) : parse_json(payload);
    EXPECT_TRUE(json.is_ok()) << payload;
    if (json) events.push_back(std::move(*json));
  }
  return events;
}

}  // namespace fathom::testing
