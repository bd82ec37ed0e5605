// Requests to the services that say who a job is.
#pragma once
#include <initializer_list>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "trainer/http/http_exchange.h"

namespace tycho {

using FormPairs = std::vector<std::pair<std::string, std::string>>;

struct IdentityRequest {
  std::string place = "[aws]";  // for messages
  std::string source;           // for messages, such as "AZURE_CLIENT_SECRET"
  HttpCall call;
  std::vector<int> also = {};          // statuses that are answers, besides 200
  std::vector<int> also_passing = {};  // statuses that are tried again, besides those that usually pass
  std::string advice = "correct the identity";
  int tries = 5;
  double first_wait_s = 0.8;  // doubles with each try
};

/// Sends a request until it is answered. Throws Error: kUnusable when it is refused, kStorage when nobody
/// answers after all tries, kTerminated on a stop.
HttpAnswer ask_identity(const IdentityRequest& request, const std::stop_token& stop);

/// Returns "a=b&c=d%2Fe".
std::string form_of(const FormPairs& pairs);

/// Returns a file's text without the white space at its end, and masks it.
std::string read_secret_file(const std::string& path);

/// Returns all variables of the environment whose names begin so, as one text: when they change, another
/// identity may be set up.
std::string identity_owner(std::initializer_list<const char*> prefixes);

/// Throws Error (kUnusable) when `url` is http:// on another machine, where credentials would be readable.
void check_encrypted(const std::string& url, const std::string& where);

}  // namespace tycho
