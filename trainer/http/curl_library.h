// libcurl, opened when the first request is made: it brings thirty libraries along, which would make every
// command start 12 ms later.
#pragma once
#include <string>

#include <curl/curl.h>

namespace tycho {

/// The functions of libcurl that are used here.
struct CurlLibrary {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...) = nullptr;
  CURLcode (*easy_getinfo)(CURL*, CURLINFO, ...) = nullptr;
  std::string certificates;  // file to name in every request; "": libcurl knows its own
};

/// Opens the library at the first call. Callable from any thread. Throws Error (kUnusable) that names the
/// package to install.
const CurlLibrary& curl_library();

}  // namespace tycho
