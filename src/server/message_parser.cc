#include "server/message_parser.h"

#include <utility>

#include "server/data_url.h"
#include "server/json_fields.h"
#include "server/json_output.h"

namespace fathom::server {

namespace {

using text::ChatMessage;
using text::ContentPart;
using text::Role;

class MessageParser {
 public:
  MessageParser(const MessageLimits& limits, bool has_vision, ChatRequest* request,
                std::optional<ApiError>* error)
      : limits_(limits), has_vision_(has_vision), request_(request), error_(error) {}

  void run(const Json& messages) {
    if (static_cast<int64_t>(messages.size()) > limits_.messages_max)
      return fail(
          invalid_value("messages", fmt::format("messages: {} messages, at most {} are taken",
                                                messages.size(), limits_.messages_max)));
    last_turn_begin_ = begin_of_last_turn(messages);
    for (size_t i = 0; i < messages.size() && !*error_; ++i) {
      const std::string path = fmt::format("messages[{}]", i);
      is_in_last_turn_ = i >= last_turn_begin_;
      if (!messages[i].is_object())
        return fail(invalid_type(path, fmt::format("{}: wanted an object with role and content, "
                                                   "found {}",
                                                   path, shown(messages[i]))));
      parse_message(messages[i], path);
    }
  }

 private:
  void fail(ApiError error) {
    if (!*error_) *error_ = std::move(error);
  }

  // Messages after the last one of the assistant: those that the answer is about.
  static size_t begin_of_last_turn(const Json& messages) {
    for (size_t i = messages.size(); i > 0; --i) {
      const Json& message = messages[i - 1];
      if (message.is_object() && message.contains("role") && message["role"] == "assistant")
        return i == messages.size() ? i - 1 : i;
    }
    return 0;
  }

  void parse_message(const Json& json, const std::string& path) {
    JsonFields fields(json, path, error_);
    const auto role_name = fields.string("role");
    if (*error_) return;
    if (!role_name)
      return fail({400, "missing_required_parameter", path + ".role: is missing", path + ".role"});
    const auto role = text::role_from_name(*role_name);
    if (!role)
      return fail(invalid_value(path + ".role",
                                fmt::format("{}.role: \"{}\" is none of system, developer, user, "
                                            "assistant, tool, function, latest_reminder",
                                            path, shown_text(*role_name))));
    ChatMessage message;
    message.role = *role;
    parse_content(fields, path, &message);
    if (message.role == Role::kAssistant) parse_assistant(fields, path, &message);
    if (const auto id = fields.string("tool_call_id")) message.tool_call_id = *id;
    request_->messages.push_back(std::move(message));
  }

  void parse_content(JsonFields& fields, const std::string& path, ChatMessage* message) {
    const std::string content_path = path + ".content";
    const Json* content = fields.find("content");
    if (!content) {
      // An assistant may have only called; a tool may have nothing to say. A person must say
      // something.
      if (message->role != Role::kAssistant && message->role != Role::kTool)
        fail({400, "missing_required_parameter", content_path + ": is missing or null",
              content_path});
      return;
    }
    if (content->is_string())
      return message->content.push_back(ContentPart::of_text(content->get<std::string>()));
    if (!content->is_array())
      return fail(
          invalid_type(content_path, fmt::format("{}: wanted a string or an array of parts, "
                                                 "found {}",
                                                 content_path, shown(*content))));
    part_count_ += static_cast<int64_t>(content->size());
    if (part_count_ > limits_.parts_max)
      return fail(invalid_value(content_path, fmt::format("{}: more than {} content parts in all",
                                                          content_path, limits_.parts_max)));
    for (size_t i = 0; i < content->size() && !*error_; ++i)
      parse_part((*content)[i], fmt::format("{}[{}]", content_path, i), message);
  }

  void parse_part(const Json& part, const std::string& path, ChatMessage* message) {
    if (part.is_string())
      return message->content.push_back(ContentPart::of_text(part.get<std::string>()));
    if (!part.is_object())
      return fail(
          invalid_type(path, fmt::format("{}: wanted an object, found {}", path, shown(part))));
    JsonFields fields(part, path, error_);
    const auto type = fields.string("type");
    if (*error_) return;
    if (!type)
      return fail({400, "missing_required_parameter", path + ".type: is missing", path + ".type"});
    if (*type == "text" || *type == "input_text" || *type == "output_text")
      return add_text(fields, "text", message);
    if (*type == "refusal") return add_text(fields, "refusal", message);
    if (*type == "thinking" || *type == "reasoning") {
      if (const auto text = fields.string(type->c_str())) message->reasoning += *text;
      return;
    }
    if (*type == "image_url" || *type == "input_image")
      return parse_picture(fields, *type, path, message);
    add_unsupported(*type, path, message);
  }

  void add_text(JsonFields& fields, const char* name, ChatMessage* message) {
    const auto text = fields.string(name);
    if (!text && !*error_)
      return fail({400, "missing_required_parameter", fields.path_of(name) + ": is missing",
                   fields.path_of(name)});
    if (text) message->content.push_back(ContentPart::of_text(*text));
  }

  void add_unsupported(const std::string& type, const std::string& path, ChatMessage* message) {
    if (is_in_last_turn_ && message->role != Role::kTool)
      return fail(unsupported_value(
          path + ".type",
          fmt::format("{}.type: content of type \"{}\" is not supported", path, shown_text(type))));
    message->content.push_back(ContentPart::of_text("[Unsupported " + type + "]"));
  }

  void parse_picture(JsonFields& fields, const std::string& type, const std::string& path,
                     ChatMessage* message) {
    const bool may_hold_pictures = message->role == Role::kUser || message->role == Role::kSystem ||
                                   message->role == Role::kTool;
    if (!has_vision_ && is_in_last_turn_)
      return fail(unsupported_value(path, path + ": this model cannot see pictures"));
    if (!has_vision_ || !may_hold_pictures)
      return message->content.push_back(ContentPart::of_text("[Unsupported " + type + "]"));
    const Json* address = fields.find("image_url");
    std::string url_path = path + ".image_url";
    std::optional<std::string> url;
    if (address && address->is_object()) {
      JsonFields inner(*address, url_path, error_);
      inner.string("detail");
      url = inner.string("url");
      url_path += ".url";
    } else {
      url = fields.string("image_url");
    }
    if (*error_) return;
    if (!url) return fail({400, "missing_required_parameter", url_path + ": is missing", url_path});
    add_picture(*url, url_path, message);
  }

  void add_picture(const std::string& url, const std::string& path, ChatMessage* message) {
    const auto index = static_cast<int>(request_->pictures.size());
    if (index >= limits_.pictures_max)
      return fail(
          {400, "image_too_large",
           fmt::format("{}: more than {} pictures in one request", path, limits_.pictures_max),
           path});
    auto bytes = decode_data_url(url, limits_.picture_bytes_max);
    if (!bytes) {
      const bool is_other_scheme = bytes.status().code() == Code::kUnsupported;
      return fail({400, is_other_scheme ? "image_url_disabled" : "invalid_image",
                   path + ": " + bytes.status().message(), path});
    }
    picture_bytes_ += static_cast<int64_t>(bytes->size());
    if (picture_bytes_ > limits_.pictures_bytes_max)
      return fail({400, "image_too_large",
                   fmt::format("{}: the pictures have more than {} bytes together", path,
                               limits_.pictures_bytes_max),
                   path});
    request_->pictures.push_back({std::move(*bytes), path});
    message->content.push_back(ContentPart::of_picture(index));
  }

  void parse_assistant(JsonFields& fields, const std::string& path, ChatMessage* message) {
    if (const auto text = fields.string("reasoning_content"))
      message->reasoning = *text;
    else if (const Json* other = fields.find("reasoning"); other && other->is_string())
      message->reasoning = other->get<std::string>();
    else if (message->reasoning.empty())
      message->reasoning = listed_reasoning(fields);
    const Json* calls = fields.array("tool_calls");
    for (size_t i = 0; calls && i < calls->size() && !*error_; ++i)
      parse_call((*calls)[i], fmt::format("{}.tool_calls[{}]", path, i), message);
  }

  // Reasoning as gateways send it back: a list of blocks, of which some may be encrypted.
  static std::string listed_reasoning(const JsonFields& fields) {
    std::string text;
    for (const auto& [list, field] :
         {std::pair("reasoning_details", "text"), std::pair("thinking_blocks", "thinking")}) {
      const Json* blocks = fields.find(list);
      for (size_t i = 0; blocks && blocks->is_array() && i < blocks->size(); ++i)
        if (const Json& block = (*blocks)[i]; block.is_object() && block.contains(field))
          if (const Json& part = block[field]; part.is_string()) text += part.get<std::string>();
      if (!text.empty()) break;
    }
    return text;
  }

  void parse_call(const Json& call, const std::string& path, ChatMessage* message) {
    if (!call.is_object())
      return fail(
          invalid_type(path, fmt::format("{}: wanted an object, found {}", path, shown(call))));
    JsonFields fields(call, path, error_);
    text::ToolCall typed;
    typed.id = fields.string("id").value_or("");
    const Json* function = fields.object("function");
    if (*error_) return;
    if (!function)
      return fail(
          {400, "missing_required_parameter", path + ".function: is missing", path + ".function"});
    JsonFields inner(*function, path + ".function", error_);
    typed.name = inner.string("name").value_or("");
    const Json* arguments = inner.find("arguments");
    // Broken arguments of the past are the renderer's to cope with: refusing them would wedge the
    // chat.
    if (arguments)
      typed.arguments =
          arguments->is_string() ? arguments->get<std::string>() : json_text(*arguments);
    message->tool_calls.push_back(std::move(typed));
  }

  const MessageLimits& limits_;
  const bool has_vision_;
  ChatRequest* request_;
  std::optional<ApiError>* error_;
  size_t last_turn_begin_ = 0;
  bool is_in_last_turn_ = false;
  int64_t part_count_ = 0;
  int64_t picture_bytes_ = 0;
};

}  // namespace

void parse_messages(const Json& messages, bool has_vision, const MessageLimits& limits,
                    ChatRequest* request, std::optional<ApiError>* error) {
  MessageParser(limits, has_vision, request, error).run(messages);
}

}  // namespace fathom::server
