// A request to a store, tried again while the store may still answer.
#pragma once
#include <functional>
#include <initializer_list>
#include <stop_token>
#include <string>

#include "trainer/buckets/bucket.h"
#include "trainer/http/http_exchange.h"

namespace tycho {

struct StoreAnswer {
  HttpAnswer http;
  int num_tries = 0;  // with more than one, an earlier try may have done its work
};

/// A request of one object or listing.
struct StoreAsk {
  std::string place;                       // for messages
  std::function<HttpCall()> make;          // called for each try, so that its time and credentials are new
  std::initializer_list<int> also;         // statuses that are answers, besides 2xx
  std::function<std::string()> hint = {};  // called for the end of a message about 401 or 403
};

/// Sends a request until the store answers. Throws Error as Bucket says.
StoreAnswer ask_store(const StoreAsk& ask, const RequestTries& tries, const std::stop_token& stop);

/// Returns the store's code of an error, such as NoSuchUpload; "" when the answer has none.
std::string store_code(const HttpAnswer& answer);

}  // namespace tycho
