// OpenSSL's digests use the instructions that processors have for them: models are hundreds of gigabytes.
#include "trainer/hub/hub_hash.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hmac.h"

namespace tycho {

struct HubHasher::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

HubHasher::HubHasher(const HubFile& file) : state_(std::make_unique<State>()) {
  const bool is_large = !file.sha256.empty();
  TYCHO_CHECK(EVP_DigestInit_ex(state_->context.get(), is_large ? EVP_sha256() : EVP_sha1(), nullptr) == 1,
              "[hub] OpenSSL has no {}", is_large ? "SHA-256" : "SHA-1");
  if (is_large) return;
  const std::string head = fmt::format("blob {}", file.num_bytes);
  update(head.c_str(), head.size() + 1);  // with its zero byte, as git stores a blob
}

HubHasher::~HubHasher() = default;

void HubHasher::update(const void* data, size_t num_bytes) {
  EVP_DigestUpdate(state_->context.get(), data, num_bytes);
}

std::string HubHasher::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size);
  return tycho::hex({reinterpret_cast<const char*>(digest.data()), size});
}

std::string hub_hash_of(const std::string& path, const HubFile& file) {
  constexpr int64_t kBlockBytes = 4 << 20;
  HubHasher hasher(file);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  std::vector<char> block(static_cast<size_t>(std::min(size, kBlockBytes)));
  for (int64_t at = 0; at < size; at += kBlockBytes) {
    const auto count = static_cast<size_t>(std::min(size - at, kBlockBytes));
    read_exactly(path, at, block.data(), count);
    hasher.update(block.data(), count);
  }
  return hasher.hex();
}

}  // namespace tycho
