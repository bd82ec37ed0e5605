// Opens libcurl by name: the one beside a packaged program (scripts/package), or else the system's. It stays
// open: libraries below it do not survive being closed.
#include "trainer/http/curl_library.h"

#include <dlfcn.h>

#include "trainer/base/error.h"
#include "trainer/http/certificates.h"

namespace tycho {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    fail(ExitCode::kUnusable, "[http] libcurl.so.4 has no {}; install libcurl 7.85 or newer", name);
}

/// Returns the file of certificates that was built into libcurl.
std::string built_in_certificates(const CurlLibrary& curl) {
  CURL* handle = curl.easy_init();
  const char* file = nullptr;
  if (handle != nullptr) curl.easy_getinfo(handle, CURLINFO_CAINFO, &file);
  std::string found = file != nullptr ? file : "";
  if (handle != nullptr) curl.easy_cleanup(handle);
  return found;
}

CurlLibrary open_library() {
  void* library = ::dlopen("libcurl-tycho.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    fail(ExitCode::kUnusable,
         "[http] HTTP and S3 need libcurl, which cannot be opened ({}); install the package libcurl4",
         ::dlerror());
  CurlLibrary curl;
  find(library, "curl_global_init", curl.global_init);
  find(library, "curl_easy_init", curl.easy_init);
  find(library, "curl_easy_reset", curl.easy_reset);
  find(library, "curl_easy_cleanup", curl.easy_cleanup);
  find(library, "curl_easy_perform", curl.easy_perform);
  find(library, "curl_easy_strerror", curl.easy_strerror);
  find(library, "curl_slist_append", curl.slist_append);
  find(library, "curl_slist_free_all", curl.slist_free_all);
  find(library, "curl_easy_setopt", curl.easy_setopt);
  find(library, "curl_easy_getinfo", curl.easy_getinfo);
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    fail(ExitCode::kUnusable, "[http] libcurl cannot be initialised");
  curl.certificates = certificates_to_name(built_in_certificates(curl));
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary library = open_library();
  return library;
}

}  // namespace tycho
