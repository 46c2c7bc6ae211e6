// Table: every command, option and environment variable of the program.
#include <array>

#include "cli/options.h"
#include "engine/draft_wish.h"

namespace fathom::cli {

namespace {

constexpr std::array<Command, 7> kCommands = {{
    {"run", "--model DIR --prompt TEXT [--image FILE]...",
     "answer one prompt on the standard output", 0},
    {"chat", "--model DIR", "talk in the terminal; Ctrl-C stops an answer, Ctrl-D ends", 0},
    {"serve", "--model DIR", "the chat page and an OpenAI-compatible API", 0},
    {"inspect", "DIR [--json] [--deep]", "what a checkpoint holds, and whether it is sound", 1},
    {"verify", "--model DIR --golden DIR [--json]", "compare every step with golden data", 0},
    {"tokenize", "DIR [TEXT] [--jsonl]", "token ids of a text (or of standard input)", 2},
    {"bench", "[NAME]...", "this machine's ceilings, and each figure beside its bound", 64},
}};

constexpr std::string_view kTalk = "run chat serve";

constexpr std::array<Option, 52> kOptions = {{
    // --- model ---
    {"--model", "FATHOM_MODEL", Kind::kText, "run chat serve verify bench", "DIR", "",
     "directory of the checkpoint, as downloaded"},
    {"--policy", "FATHOM_POLICY", Kind::kChoice, kTalk, "reference|f32|smooth", "reference",
     "numeric policy"},
    {"--threads", "FATHOM_THREADS", Kind::kInteger, "run chat serve verify bench", "N", "",
     "threads that compute; default: one a physical core this process may use", 1, 1024},
    {"--isa", "FATHOM_FORCE_ISA", Kind::kChoice, "*", "avx512|avx2|portable|ref", "",
     "instruction set; default: the best there is"},
    {"--ctx-size", "FATHOM_CTX_SIZE", Kind::kInteger, kTalk, "N", "65536",
     "tokens of prompt and answer together, at most what the model holds", 16, 16777216},
    {"--prefill-chunk", "FATHOM_PREFILL_CHUNK", Kind::kInteger, kTalk, "N", "512",
     "prompt tokens of one step; a step is the unit of cancelling", 1, 65536},
    {"--no-preload", "FATHOM_NO_PRELOAD", Kind::kFlag, kTalk, "", "",
     "start at once and read weights when they are first used"},
    {"--cache-dir", "FATHOM_CACHE_DIR", Kind::kText, kTalk, "DIR", "",
     "small tables derived from the tokenizer; default: fathom in the user's cache directory"},
    {"--log-level", "FATHOM_LOG_LEVEL", Kind::kChoice, "*", "error|warning|info|debug", "info",
     "what is told on standard error"},
    // --- one prompt ---
    {"--prompt", "", Kind::kText, "run", "TEXT", "", "the question; - reads standard input"},
    {"--image", "", Kind::kList, "run", "FILE", "",
     "a picture in front of the question; repeatable"},
    {"--raw", "", Kind::kFlag, "run", "", "",
     "the prompt is the whole text with its control tokens, and the answer is shown as it comes"},
    {"--json", "", Kind::kFlag, "run inspect verify", "", "", "the result as JSON"},
    {"--system", "FATHOM_SYSTEM", Kind::kText, "run chat", "TEXT", "", "a system message"},
    {"--thinking", "FATHOM_THINKING", Kind::kFlag, "run chat", "", "",
     "let the model think first (shown on standard error)"},
    {"--effort", "FATHOM_EFFORT", Kind::kChoice, "run chat", "low|high|max|N", "high",
     "how hard it thinks; N: 1 to 100", 1, 100},
    {"--max-tokens", "FATHOM_MAX_TOKENS", Kind::kInteger, "run chat", "N", "",
     "longest answer in tokens; default: what the context holds", 1, 16777216},
    {"--temperature", "FATHOM_TEMPERATURE", Kind::kNumber, kTalk, "T", "1",
     "0 takes the likeliest token each time", 0, 2},
    {"--top-p", "FATHOM_TOP_P", Kind::kNumber, kTalk, "P", "1",
     "draw from the likeliest tokens that together have this probability", 0, 1},
    {"--top-k", "FATHOM_TOP_K", Kind::kInteger, "run chat", "K", "0",
     "draw from the K likeliest tokens; 0: all", 0, 1000000},
    {"--min-p", "FATHOM_MIN_P", Kind::kNumber, "run chat", "P", "0",
     "leave out tokens less likely than P times the likeliest", 0, 1},
    {"--seed", "FATHOM_SEED", Kind::kInteger, "run chat", "N", "",
     "the same seed gives the same answer; default: random", 0, 9.2e18},
    {"--draft", "FATHOM_DRAFT", Kind::kChoice, kTalk, "auto|off|N", "auto",
     "tokens guessed ahead in each step: as many as pay, none, or N; greedy answers stay the same",
     0, kDraftsMax},
    {"--stop", "", Kind::kList, "run", "TEXT", "", "end the answer before this text; repeatable"},
    // --- server ---
    {"--host", "FATHOM_HOST", Kind::kText, "serve", "ADDRESS", "127.0.0.1", "address to listen on"},
    {"--port", "FATHOM_PORT", Kind::kInteger, "serve", "N", "8080", "0: any free port", 0, 65535},
    {"--alias", "FATHOM_ALIAS", Kind::kText, "serve", "NAME", "",
     "model id that clients see; default: the directory's name"},
    {"--strict-model-names", "FATHOM_STRICT_MODEL_NAMES", Kind::kFlag, "serve", "", "",
     "refuse requests for another model id"},
    {"--api-key", "FATHOM_API_KEY", Kind::kList, "serve", "KEY", "",
     "a key that clients must send; visible in process lists, so prefer a file"},
    {"--api-key-file", "FATHOM_API_KEY_FILE", Kind::kText, "serve", "FILE", "",
     "keys, one a line; read again on SIGHUP"},
    {"--insecure-no-auth", "FATHOM_INSECURE_NO_AUTH", Kind::kFlag, "serve", "", "",
     "listen on other than loopback addresses without any key"},
    {"--allowed-host", "FATHOM_ALLOWED_HOST", Kind::kList, "serve", "NAME", "",
     "a name besides localhost under which this server may be asked"},
    {"--cors-origin", "FATHOM_CORS_ORIGIN", Kind::kList, "serve", "ORIGIN", "",
     "a web page's origin that may use this server; * needs keys"},
    {"--max-queue", "FATHOM_MAX_QUEUE", Kind::kInteger, "serve", "N", "64",
     "requests that may wait", 0, 100000},
    {"--queue-timeout", "FATHOM_QUEUE_TIMEOUT", Kind::kInteger, "serve", "SECONDS", "600",
     "longest wait; 0: no limit", 0, 1000000},
    {"--stall-seconds", "FATHOM_STALL_SECONDS", Kind::kInteger, "serve", "SECONDS", "300",
     "without a step for so long the server reports itself unhealthy", 1, 1000000},
    {"--drain-seconds", "FATHOM_DRAIN_SECONDS", Kind::kInteger, "serve", "SECONDS", "30",
     "time for running answers after SIGTERM", 0, 100000},
    {"--max-body-mib", "FATHOM_MAX_BODY_MIB", Kind::kInteger, "serve", "MIB", "64",
     "largest request body", 1, 1024},
    {"--default-max-tokens", "FATHOM_DEFAULT_MAX_TOKENS", Kind::kInteger, "serve", "N", "",
     "for requests without one; default: 65536 when thinking, else 8192", 1, 393216},
    {"--default-thinking", "FATHOM_DEFAULT_THINKING", Kind::kChoice, "serve", "on|off", "on",
     "for requests that do not say"},
    {"--reasoning-field", "FATHOM_REASONING_FIELD", Kind::kChoice, "serve",
     "reasoning_content|reasoning|both", "reasoning_content", "where answers hold their reasoning"},
    {"--sse-ping-interval", "FATHOM_SSE_PING_INTERVAL", Kind::kNumber, "serve", "SECONDS", "5",
     "silence of a stream before a heartbeat; 0: none", 0, 3600},
    {"--max-connections", "FATHOM_MAX_CONNECTIONS", Kind::kInteger, "serve", "N", "512", "in all",
     1, 100000},
    {"--max-connections-per-peer", "FATHOM_MAX_CONNECTIONS_PER_PEER", Kind::kInteger, "serve", "N",
     "128", "of one address", 1, 100000},
    {"--header-timeout", "FATHOM_HEADER_TIMEOUT", Kind::kNumber, "serve", "SECONDS", "10",
     "from the first byte of a request to the end of its headers", 0.1, 3600},
    // --- others ---
    {"--deep", "", Kind::kFlag, "inspect", "", "", "read every weight"},
    {"--golden", "", Kind::kText, "verify", "DIR", "", "folder with index.json and cases"},
    {"--cases", "", Kind::kText, "verify", "PREFIX", "", "only cases whose name begins so"},
    {"--jsonl", "", Kind::kFlag, "tokenize", "", "",
     "standard input holds a JSON string a line; gives a JSON array of ids a line"},
    {"--parse-special", "", Kind::kFlag, "tokenize", "", "",
     "text that spells a control token becomes that token"},
    {"--json", "", Kind::kText, "bench", "FILE", "", "also write the figures there"},
    {"--record", "", Kind::kFlag, "bench", "", "", "also keep the figures in bench/history"},
}};

}  // namespace

std::span<const Option> all_options() {
  return kOptions;
}

std::span<const Command> all_commands() {
  return kCommands;
}

}  // namespace fathom::cli
