// Signed requests to one place in S3, or in a store that speaks its protocol.
#pragma once
#include <initializer_list>
#include <stop_token>
#include <string>

#include "trainer/buckets/bucket.h"
#include "trainer/buckets/store_exchange.h"
#include "trainer/data/storage/aws_settings.h"
#include "trainer/data/storage/s3_request.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// Used from any thread.
class S3Connection {
 public:
  S3Connection(RemoteUri place, const RequestTries& tries);
  const RemoteUri& place() const { return place_; }
  const RequestTries& tries() const { return tries_; }
  std::string place_of(const std::string& name) const { return place_.text + "/" + name; }
  /// Returns the key of an object or of a prefix: s3_key().
  std::string key_of(const std::string& name) const { return s3_key(place_, name); }
  /// True for Google's store, which lacks some requests of S3.
  bool is_google() const { return settings_.endpoint.find("storage.googleapis.com") != std::string::npos; }
  /// Sends a request until it is answered by 2xx or a status of `also`. A body goes with its MD5.
  StoreAnswer ask(S3Call call, const std::string& body, std::initializer_list<int> also,
                  const std::stop_token& stop) const;

 private:
  RemoteUri place_;
  AwsSettings settings_;
  RequestTries tries_;
};

}  // namespace tycho
