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

std::string in_base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace tycho
