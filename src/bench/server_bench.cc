#include "bench/server_bench.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/log.h"
#include "engine/engine.h"
#include "server/api.h"
#include "server/http_server.h"

namespace fathom::bench {

namespace {

using Clock = std::chrono::steady_clock;

struct InstantState : SequenceState {
  int64_t token_count() const override { return count; }
  int64_t bytes() const override { return 0; }
  int64_t count = 0;
};

// Says the same letter for ever, at once.
class InstantModel : public LanguageModel {
 public:
  InstantModel(const text::Tokenizer& tokenizer, const text::MarkerIds& markers, TokenId letter)
      : letter_(letter) {
    info_.architecture = "instant";
    info_.vocab_count = tokenizer.vocab_count();
    info_.hidden_size = 1;
    info_.context_tokens_max = 1 << 16;
    info_.bos_token = markers.bos;
    info_.eos_token = markers.eos;
  }
  const ModelInfo& info() const override { return info_; }
  Result<std::unique_ptr<SequenceState>> new_sequence(int64_t) override {
    return std::unique_ptr<SequenceState>(new InstantState);
  }
  Status forward(std::span<const SequenceRows> sequences, const CancelFlag*,
                 std::vector<float>* logits) override {
    const auto vocab_count = static_cast<size_t>(info_.vocab_count);
    for (const SequenceRows& rows : sequences) {
      auto& state = static_cast<InstantState&>(*rows.state);
      state.count += static_cast<int64_t>(rows.tokens.size());
      // Greedy sampling leaves the row as it is, so one writing serves for ever.
      if (state.count <= rows.logits_from || logits->size() == vocab_count) continue;
      logits->assign(vocab_count, 0.0f);
      (*logits)[static_cast<size_t>(letter_)] = 20.0f;
    }
    return Status::ok();
  }
  Result<int64_t> picture_token_count(int64_t, int64_t) const override { return 1; }
  Result<PictureTokens> encode_picture(const RgbImage&, const CancelFlag*) override {
    return error(Code::kUnsupported, "no vision");
  }

 private:
  ModelInfo info_;
  TokenId letter_;
};

Result<LoadedModel> instant_model(const std::string& directory) {
  LoadedModel loaded;
  loaded.name = "instant";
  FATHOM_ASSIGN(loaded.tokenizer, text::Tokenizer::load(directory + "/tokenizer.json"));
  FATHOM_ASSIGN(loaded.profile, text::find_prompt_profile("v41"));
  FATHOM_ASSIGN(loaded.markers, text::find_markers(*loaded.tokenizer, *loaded.profile));
  FATHOM_ASSIGN(const auto letter, loaded.tokenizer->encode("a", text::AddedTokens::kIgnore));
  loaded.model = std::make_unique<InstantModel>(*loaded.tokenizer, loaded.markers, letter.front());
  return loaded;
}

// Asks on one kept connection and waits for the whole reply.
class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_open_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Microseconds until `end` came, or an error.
  Result<double> ask(int64_t max_tokens, bool stream, std::string_view end) {
    const std::string body = fmt::format(
        R"({{"messages":[{{"role":"user","content":"{}"}}],"max_tokens":{},"temperature":0,)"
        R"("stream":{},"thinking":{{"type":"disabled"}},"cache_prompt":false}})",
        "What is in this picture?", max_tokens, stream);
    const std::string request = fmt::format(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        body.size(), body);
    const auto start = Clock::now();
    if (!is_open_ || ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0)
      return error(Code::kUnavailable, "the server on loopback cannot be reached");
    std::string tail;
    char part[65536];
    while (tail.find(end) == std::string::npos) {
      const ssize_t got = ::recv(fd_, part, sizeof part, 0);
      if (got <= 0) return error(Code::kUnavailable, "the server on loopback closed");
      tail.append(part, static_cast<size_t>(got));
      if (tail.size() > 1 << 16) tail.erase(0, tail.size() - 4096);
    }
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  }

 private:
  int fd_;
  bool is_open_ = false;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Result<std::vector<Figure>> bench_server(const std::string& directory) {
  constexpr int kRequests = 300, kStreams = 5, kTokens = 4000;
  constexpr double kRequestMsMax = 1, kTokenUsMax = 50;
  FATHOM_ASSIGN(LoadedModel loaded, instant_model(directory));
  const LogLevel level = log_level();
  set_log_level(LogLevel::kError);
  Engine engine(std::move(loaded), {});
  FATHOM_ASSIGN(server::Access access, server::Access::make({}));
  server::ApiOptions options;
  options.model_name = "instant";
  server::Api api(options, std::move(access));
  api.set_engine(&engine);
  FATHOM_ASSIGN(const auto http, server::HttpServer::start({.port = 0, .limits = {}}, api));
  Client client(http->port());

  std::vector<double> request_us, token_us;
  for (int i = 0; i < kRequests; ++i) {
    FATHOM_ASSIGN(const double us, client.ask(1, false, "}}"));
    request_us.push_back(us);
  }
  for (int i = 0; i < kStreams; ++i) {
    FATHOM_ASSIGN(const double us, client.ask(kTokens, true, "0\r\n\r\n"));
    token_us.push_back(us / kTokens);
  }
  set_log_level(level);
  return std::vector<Figure>{
      limit_figure("server, a request", median(request_us) / 1000, "ms", kRequestMsMax),
      limit_figure("server, a token", median(token_us), "us", kTokenUsMax)};
}

}  // namespace fathom::bench
