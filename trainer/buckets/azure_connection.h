// Requests to one place in Azure's Blob storage.
#pragma once
#include <initializer_list>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "trainer/buckets/bucket.h"
#include "trainer/buckets/store_exchange.h"
#include "trainer/data/storage/azure_access.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

struct AzureCall {
  std::string method = "GET";
  std::string name;  // of a blob below the place; "" for the container itself
  std::vector<std::pair<std::string, std::string>> query = {}, headers = {};
};

/// Used from any thread.
class AzureConnection {
 public:
  AzureConnection(const RemoteUri& place, const RequestTries& tries);
  const RemoteUri& place() const { return place_; }
  std::string place_of(const std::string& name) const { return place_.text + "/" + name; }
  /// Returns the name in the container of a blob or of a prefix.
  std::string key_of(const std::string& name) const {
    return place_.prefix.empty() ? name : place_.prefix + "/" + name;
  }
  /// Sends a request until it is answered by 2xx or a status of `also`. A body goes with its MD5, which Azure
  /// checks.
  StoreAnswer ask(const AzureCall& call, const std::string& body, std::initializer_list<int> also,
                  const std::stop_token& stop) const;

 private:
  RemoteUri place_;
  std::string container_url_;
  AzureAccess access_;
  RequestTries tries_;
};

}  // namespace tycho
