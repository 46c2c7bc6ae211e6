#include "server/json_output.h"

namespace fathom::server {

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse json_response(const Json& json) {
  HttpResponse response;
  response.body = json_text(json);
  return response;
}

}  // namespace fathom::server
