// One-shot digests.
#include "trainer/buckets/content_digest.h"

#include <openssl/evp.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string digest_of(const char* name, std::string_view bytes) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  size_t size = 0;
  if (EVP_Q_digest(nullptr, name, "fips=no", bytes.data(), bytes.size(),
                   reinterpret_cast<unsigned char*>(digest.data()), &size) != 1 &&
      EVP_Q_digest(nullptr, name, nullptr, bytes.data(), bytes.size(),
                   reinterpret_cast<unsigned char*>(digest.data()), &size) != 1)
    fail(ExitCode::kUnusable, "[bucket] libcrypto has no {}: is it restricted by FIPS?", name);
  digest.resize(size);
  return digest;
}

}  // namespace

std::string content_md5(std::string_view bytes) { return digest_of("MD5", bytes); }
std::string content_sha256(std::string_view bytes) { return digest_of("SHA256", bytes); }

}  // namespace tycho
