#include "text/internal/tool_text.h"

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "text/internal/python_json.h"

namespace fathom::text::internal {

namespace {

std::string open_tag(std::string_view name) {
  return fmt::format("<{}{}", kDsml, name);
}
std::string close_tag(std::string_view name) {
  return fmt::format("</{}{}>", kDsml, name);
}

// Protocol constant; {0}..{5} are the tags.
constexpr std::string_view kDeclaration =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by "
    "writing a \"{0}>\" block like the following:\n\n"
    "{0}>\n"
    "{2} name=\"$TOOL_NAME\">\n"
    "{4} name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE{5}\n"
    "...\n"
    "{3}\n"
    "{2} name=\"$TOOL_NAME2\">\n"
    "...\n"
    "{3}\n"
    "{1}\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types "
    "(numbers, booleans, arrays, objects), pass the value in JSON format and set "
    "`string=\"false\"`.\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning "
    "inside <think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";
constexpr std::string_view kDeclarationEnd =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

JsonMember* find_member(std::vector<JsonMember>* members, std::string_view name) {
  const auto it = std::find_if(members->begin(), members->end(),
                               [&](const JsonMember& m) { return m.name == name; });
  return it == members->end() ? nullptr : &*it;
}

void erase_member(std::vector<JsonMember>* members, std::string_view name) {
  std::erase_if(*members, [&](const JsonMember& m) { return m.name == name; });
}

// A "namespace" inside the function: a name, or an object with name and description.
Status read_namespace(std::vector<JsonMember>* members, std::string* name,
                      std::string* description) {
  const JsonMember* space = find_member(members, "namespace");
  if (space == nullptr) return {};
  if (space->is_string) {
    *name = space->value;
  } else {
    FATHOM_ASSIGN(auto fields, object_members(space->value));
    if (const auto* field = find_member(&fields, "name")) *name = field->value;
    if (const auto* field = find_member(&fields, "description")) *description = field->value;
  }
  erase_member(members, "namespace");
  return {};
}

Result<std::string> schema_line(const ToolDefinition& tool) {
  FATHOM_ASSIGN(auto members, object_members(tool.function));
  erase_member(&members, "strict");
  std::string space = tool.namespace_name, space_description = tool.namespace_description;
  FATHOM_TRY(read_namespace(&members, &space, &space_description).with_context("namespace"));
  JsonMember* name = find_member(&members, "name");
  if (name == nullptr || !name->is_string || name->value.empty())
    return error(Code::kInvalidArgument, "name: wanted a string that is not empty");
  if (name->value.find("::") != std::string::npos)
    return error(Code::kInvalidArgument, "name \"{}\": \"::\" is for namespaces", name->value);
  if (space.empty()) return join_members(members);
  name->value = space + "::" + name->value;
  if (!space_description.empty()) {
    JsonMember* description = find_member(&members, "description");
    if (description == nullptr) {
      members.push_back({"description", true, space_description});
    } else if (description->is_string) {
      description->value = space_description + "\n" + description->value;
    }
  }
  return join_members(members);
}

// Arguments as parameters. What is no JSON object becomes one parameter, as in the reference.
std::vector<JsonMember> call_parameters(const ToolCall& call) {
  const std::string arguments = unwrap_json_string(call.arguments);
  if (arguments.find_first_not_of(" \t\r\n") == std::string::npos) return {};
  auto members = object_members(arguments);
  if (members) return std::move(members.value());
  log(LogLevel::kWarning, "arguments of a tool call are no JSON object; one parameter holds them");
  return {{"arguments", true, arguments}};
}

}  // namespace

Status write_tool_declarations(const PromptProfile& profile, std::span<const ToolDefinition> tools,
                               PromptWriter* out) {
  out->trusted(fmt::format(kDeclaration, open_tag(profile.calls_tag), close_tag(profile.calls_tag),
                           open_tag(profile.invoke_tag), close_tag(profile.invoke_tag),
                           open_tag(profile.parameter_tag), close_tag(profile.parameter_tag)));
  for (size_t i = 0; i < tools.size(); ++i) {
    auto line = schema_line(tools[i]);
    if (!line) return line.status().with_context(fmt::format("tools[{}].function", i));
    if (i > 0) out->trusted("\n");
    out->untrusted(*line);
  }
  out->trusted(kDeclarationEnd);
  return {};
}

void write_tool_calls(const PromptProfile& profile, std::span<const ToolCall> calls,
                      PromptWriter* out) {
  out->trusted(open_tag(profile.calls_tag) + ">\n");
  for (const ToolCall& call : calls) {
    out->trusted(open_tag(profile.invoke_tag) + " name=\"");
    out->untrusted(call.name);
    out->trusted("\">\n");
    const auto parameters = call_parameters(call);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i > 0) out->trusted("\n");
      out->trusted(open_tag(profile.parameter_tag) + " name=\"");
      out->untrusted(parameters[i].name);
      out->trusted(parameters[i].is_string ? "\" string=\"true\">" : "\" string=\"false\">");
      out->untrusted(parameters[i].value);
      out->trusted(close_tag(profile.parameter_tag));
    }
    out->trusted("\n" + close_tag(profile.invoke_tag) + "\n");
  }
  out->trusted(close_tag(profile.calls_tag));
}

}  // namespace fathom::text::internal
