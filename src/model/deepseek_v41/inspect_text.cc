// How an InspectReport looks: lines for people, JSON for programs.
#include "base/json.h"
#include "model/deepseek_v41/inspect.h"

namespace fathom::v41 {

namespace {

// 1234567 as "1,234,567".
std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string gigabytes(int64_t bytes) {
  return fmt::format("{:.3f} GB", static_cast<double>(bytes) / 1e9);
}

void append_counts(const char* title, const std::vector<InspectCount>& counts, std::string* out) {
  *out += fmt::format("\n{:<32}{:>9} {:>19} {:>16} {:>19}\n", title, "tensors", "parameters",
                      "scales", "bytes");
  for (const InspectCount& c : counts)
    *out += fmt::format("  {:<30}{:>9} {:>19} {:>16} {:>19}\n", c.name, grouped(c.tensors),
                        grouped(c.parameters), grouped(c.scales), grouped(c.bytes));
}

std::string layer_line(const InspectLayer& layer) {
  std::string line = fmt::format("  {:>3}  {:<8} ratio {}", layer.layer, layer.role, layer.ratio);
  if (layer.kv_source >= 0)
    line += fmt::format("  KV of layer {:<3} top-k of layer {:<3}", layer.kv_source,
                        layer.index_source);
  if (layer.is_candidate_source) line += "  candidate source";
  if (layer.has_engram) line += "  Engram";
  while (line.back() == ' ') line.pop_back();
  return line + "\n";
}

void append_memory(const InspectReport& report, std::string* out) {
  const InspectMemory& m = report.memory;
  *out += "\nmemory forecast, one sequence\n";
  const std::pair<const char*, int64_t> lines[] = {
      {"weights that every token reads", m.dense},
      {"vision weights", m.vision},
      {"routed experts of one token", m.experts_per_token},
      {"routed experts, all", m.experts_all},
      {"Engram tables (a few dozen rows a token)", m.engram_tables},
      {"drafts (DSpark)", m.drafts},
      {"state at 4,096 tokens", m.state_fixed + 4096 * m.state_per_token},
      {"state at the whole context", m.state_fixed + report.context_tokens * m.state_per_token}};
  for (const auto& [name, bytes] : lines)
    *out += fmt::format("  {:<42}{:>12}\n", name, gigabytes(bytes));
  *out += fmt::format("  {:<42}{:>12}  at most, for a prompt of 1 token and 2 tokens decoded\n",
                      "peak resident", gigabytes(peak_bytes(m, 2, 3)));
}

void append_deep(const InspectDeep& deep, std::string* out) {
  *out += fmt::format("\ndeep check: {} bytes in {:.1f} s, {} problems\n", grouped(deep.bytes),
                      deep.seconds, deep.problem_count);
  for (const std::string& problem : deep.problems) *out += "  " + problem + "\n";
  if (deep.problem_count > static_cast<int64_t>(deep.problems.size()))
    *out += fmt::format("  and {} more\n",
                        deep.problem_count - static_cast<int64_t>(deep.problems.size()));
  for (const std::string& file : deep.checksums) *out += "  SHA-256 as listed: " + file + "\n";
}

Json counts_json(const std::vector<InspectCount>& counts) {
  Json list = Json::array();
  for (const InspectCount& c : counts)
    list.push_back({{"name", c.name},
                    {"tensors", c.tensors},
                    {"parameters", c.parameters},
                    {"scales", c.scales},
                    {"bytes", c.bytes}});
  return list;
}

Json layers_json(const std::vector<InspectLayer>& layers) {
  Json list = Json::array();
  for (const InspectLayer& layer : layers)
    list.push_back({{"layer", layer.layer},
                    {"role", layer.role},
                    {"ratio", layer.ratio},
                    {"kv_source", layer.kv_source},
                    {"index_source", layer.index_source},
                    {"is_candidate_source", layer.is_candidate_source},
                    {"has_engram", layer.has_engram}});
  return list;
}

Json memory_json(const InspectMemory& m) {
  return {{"dense_bytes", m.dense},
          {"vision_bytes", m.vision},
          {"experts_per_token_bytes", m.experts_per_token},
          {"experts_bytes", m.experts_all},
          {"engram_table_bytes", m.engram_tables},
          {"draft_bytes", m.drafts},
          {"state_fixed_bytes", m.state_fixed},
          {"state_bytes_per_token", m.state_per_token},
          {"peak_bytes_2_tokens", peak_bytes(m, 2, 3)}};
}

Json deep_json(const InspectDeep& deep) {
  return {{"bytes", deep.bytes},
          {"seconds", deep.seconds},
          {"problem_count", deep.problem_count},
          {"problems", deep.problems},
          {"checksums", deep.checksums}};
}

}  // namespace

std::string inspect_text(const InspectReport& report) {
  std::string out = fmt::format(
      "{}\nDeepSeek-V4.1 (deepseek_v41), official layout\n"
      "{} shards, {} tensors, {} payload bytes, {} bytes with headers\n"
      "{} parameters, {} active for a decoded token\n"
      "context {} tokens\n",
      report.directory, report.shards, grouped(report.tensors), grouped(report.payload_bytes),
      grouped(report.file_bytes), grouped(report.parameters), grouped(report.active_parameters),
      grouped(report.context_tokens));
  append_counts("part", report.parts, &out);
  append_counts("dtype", report.dtypes, &out);
  out += "\nlayers\n";
  for (const InspectLayer& layer : report.layers) out += layer_line(layer);
  append_memory(report, &out);
  if (!report.notices.empty()) out += "\n";
  for (const std::string& notice : report.notices) out += "note: " + notice + "\n";
  if (report.deep) append_deep(*report.deep, &out);
  return out;
}

std::string inspect_json(const InspectReport& report) {
  Json json = {{"architecture", "deepseek_v41"},
               {"directory", report.directory},
               {"shards", report.shards},
               {"tensors", report.tensors},
               {"parameters", report.parameters},
               {"active_parameters", report.active_parameters},
               {"payload_bytes", report.payload_bytes},
               {"file_bytes", report.file_bytes},
               {"context_tokens", report.context_tokens},
               {"parts", counts_json(report.parts)},
               {"dtypes", counts_json(report.dtypes)},
               {"layers", layers_json(report.layers)},
               {"draft_target_layers", report.draft_target_layers},
               {"memory", memory_json(report.memory)},
               {"notices", report.notices}};
  if (report.deep) json["deep"] = deep_json(*report.deep);
  return json.dump(2) + "\n";
}

}  // namespace fathom::v41
