// The application behind the HTTP server: what each endpoint does, over one engine. The engine may
// come later than the first request; until then requests for it are told that the model loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "server/chat_request.h"
#include "server/chat_response.h"
#include "server/gate.h"
#include "server/worker_pool.h"

namespace fathom::server {

struct ApiOptions {
  std::string model_name;  // the id that is served
  std::string build_id;
  bool is_strict_about_model_names = false;
  std::optional<int64_t> default_max_tokens;  // absent: 65536 when thinking, 8192 otherwise
  bool thinks_by_default = true;
  double default_temperature = 1.0;
  double default_top_p = 1.0;
  DraftWish default_drafts = {};
  ReasoningField reasoning_field = ReasoningField::kReasoningContent;
  int64_t body_bytes_max = 64 << 20;
  int worker_count = 2;
};

class Api : public RequestHandler {
 public:
  Api(ApiOptions options, Access access);

  // `engine` outlives the api. Until this the model is loading.
  void set_engine(Engine* engine) { engine_ = engine; }
  void set_access(Access access) { gate_.set_access(std::move(access)); }
  void begin_drain();

  HeadVerdict on_head(const HttpRequest& head, bool is_reserved) override;
  void on_request(HttpRequest request, std::shared_ptr<Responder> responder) override;
  bool is_draining() const override { return is_draining_; }

 private:
  HttpResponse health() const;
  HttpResponse models(const std::string& id) const;
  HttpResponse page(const std::string& name) const;
  HttpResponse props() const;
  HttpResponse tokenize(const HttpRequest& request) const;
  HttpResponse detokenize(const HttpRequest& request) const;
  HttpResponse apply_template(const HttpRequest& request) const;
  void chat(const HttpRequest& request, const std::shared_ptr<Responder>& responder);

  ChatRequestRules rules_of(const Engine& engine) const;
  ChatWriter writer_for(const ChatRequest& chat) const;
  std::optional<ApiError> engine_problem() const;

  const ApiOptions options_;
  Gate gate_;
  const int64_t started_s_;
  const std::string fingerprint_;
  std::atomic<Engine*> engine_{nullptr};
  std::atomic<bool> is_draining_{false};
  WorkerPool workers_;  // last: its threads use everything above
};

}  // namespace fathom::server
