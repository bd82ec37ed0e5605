// Handles of libcurl, which keep their connections from one request to the next.
#pragma once
#include "trainer/http/curl_library.h"

namespace tycho {

/// A handle borrowed from the process's pool; goes back to it, without its options, at the end. Handles are
/// never closed, so that the next request to a server needs no new connection. Used by one thread; made from
/// any thread. Throws Error (kUnusable) when libcurl is missing.
class CurlLoan {
 public:
  CurlLoan();
  ~CurlLoan();
  CurlLoan(const CurlLoan&) = delete;
  CURL* get() const { return handle_; }

 private:
  CURL* handle_ = nullptr;
};

}  // namespace tycho
