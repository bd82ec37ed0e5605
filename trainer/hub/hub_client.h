// Requests to the Hugging Face hub, and what its refusals mean.
#pragma once
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/http/http_exchange.h"
#include "trainer/hub/hub_files.h"
#include "trainer/hub/hub_settings.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {

/// Number of tries and waits between them.
struct HubPolicy {
  int retries = 6;  // after the first try
  double first_wait_s = 1;
  double stall_s = 60;  // longest time without a byte
};

/// Address of the bytes of a file.
struct HubAddress {
  std::string url;           // may be signed: never shown
  bool is_hub = true;        // the hub itself, which may see the token
  std::string commit, hash;  // X-Repo-Commit; X-Linked-Etag or ETag without quotes; "" where absent
  int64_t num_bytes = -1;
};

/// Purpose of a call.
enum class HubUse { kRead, kWrite };

/// Sends requests with the token, retries those that may succeed later, and follows redirects: the token goes
/// to the hub's own scheme, host and port alone. From any thread. Functions throw Error: kUnusable with what
/// to do if the hub refuses, kStorage after all retries, kTerminated on a stop.
class HubClient {
 public:
  explicit HubClient(HubSettings settings, std::stop_token stop = {}, HubPolicy policy = {});

  /// Returns the commit of a branch, a tag or a ref.
  std::string find_commit(const HubName& name) const;
  /// Returns the commit in the answer to this question.
  std::string find_commit(const HttpAnswer& answer, const HubName& name) const;
  /// Returns all files at a commit, by path.
  std::vector<HubFile> list(const HubName& at_commit) const;
  /// Asks where a file is. Does not follow a redirect to another host.
  HubAddress locate(const HubName& file) const;
  /// Returns the bytes [begin, end) from an address, or the answer of a server that refuses this address
  /// (401, 403, 404, 410: a signed one expires). `what`: name for messages.
  HttpAnswer read(const HubAddress& address, int64_t begin, int64_t end, const std::string& what) const;
  /// Sends a call to an address below the endpoint ("/api/...") and returns its answer, 2xx.
  HttpAnswer send(HttpCall call, const HubName& about, HubUse use = HubUse::kRead) const;
  /// Sends a call like send() and returns any answer. A call that writes follows no redirect to another host.
  HttpAnswer ask(HttpCall call, const HubName& about, HubUse use = HubUse::kRead) const;
  /// Fails with what an answer that is not 2xx means, and with what to do.
  [[noreturn]] void refuse(const HttpAnswer& answer, const HubName& about, HubUse use = HubUse::kRead) const;
  /// Sends a call once more while that may help. `with_token`: to this address.
  HttpAnswer exchange(HttpCall call, bool with_token, const std::string& what) const;

  /// Returns the address "ENDPOINT/api/models/OWNER/NAME/REST".
  std::string api(const HubName& name, const std::string& rest) const;
  /// True if an address is the hub's own, which may see the token.
  bool is_hub(const std::string& url) const;
  const HubSettings& settings() const { return settings_; }
  const std::stop_token& stop() const { return stop_; }

 private:
  std::string origin_;
  HubSettings settings_;
  std::stop_token stop_;
  HubPolicy policy_;
};

/// Returns a revision as addresses have it: "refs%2Fpr%2F1", "main" for "".
std::string revision_in_url(const std::string& revision);
/// Returns the JSON of an answer. Throws Error (kUnusable) if another server than a hub has answered.
Json json_of(const HttpAnswer& answer, const HubName& about, const HubSettings& settings);
/// Returns the whole address of a Location header.
std::string absolute_url(const std::string& location, const std::string& base);
/// Returns the seconds to wait that an answer asks for: of RateLimit if nothing remains, else of Retry-After.
double hub_wait_s(const HttpAnswer& answer);

}  // namespace tycho
