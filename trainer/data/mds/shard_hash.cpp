// libxxhash for its own family, OpenSSL for the others.
#include "trainer/data/mds/shard_hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "trainer/base/error.h"

namespace tycho {
namespace {

enum class Family { kXxh3, kXxh64, kXxh32, kOpenSsl };

struct HashKind {
  std::string_view name;
  Family family;
  size_t bytes;
  const EVP_MD* (*digest)();
};

constexpr std::array<HashKind, 17> kHashes = {{{"xxh3_128", Family::kXxh3, 16, nullptr},
                                               {"xxh128", Family::kXxh3, 16, nullptr},
                                               {"xxh3_64", Family::kXxh3, 8, nullptr},
                                               {"xxh64", Family::kXxh64, 8, nullptr},
                                               {"blake2b", Family::kOpenSsl, 64, EVP_blake2b512},
                                               {"sha1", Family::kOpenSsl, 20, EVP_sha1},
                                               {"sha256", Family::kOpenSsl, 32, EVP_sha256},
                                               {"sha224", Family::kOpenSsl, 28, EVP_sha224},
                                               {"sha512", Family::kOpenSsl, 64, EVP_sha512},
                                               {"sha384", Family::kOpenSsl, 48, EVP_sha384},
                                               {"md5", Family::kOpenSsl, 16, EVP_md5},
                                               {"blake2s", Family::kOpenSsl, 32, EVP_blake2s256},
                                               {"sha3_224", Family::kOpenSsl, 28, EVP_sha3_224},
                                               {"sha3_256", Family::kOpenSsl, 32, EVP_sha3_256},
                                               {"sha3_384", Family::kOpenSsl, 48, EVP_sha3_384},
                                               {"sha3_512", Family::kOpenSsl, 64, EVP_sha3_512},
                                               {"xxh32", Family::kXxh32, 4, nullptr}}};

const HashKind* find_hash(std::string_view name) {
  const auto found =
      std::find_if(kHashes.begin(), kHashes.end(), [&](const HashKind& h) { return h.name == name; });
  return found == kHashes.end() ? nullptr : &*found;
}

struct FreeStates {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  void operator()(XXH32_state_t* state) const { XXH32_freeState(state); }
  void operator()(EVP_MD_CTX* state) const { EVP_MD_CTX_free(state); }
};

}  // namespace

struct ShardHasher::State {
  const HashKind* kind = nullptr;
  std::unique_ptr<XXH3_state_t, FreeStates> xxh3;
  std::unique_ptr<XXH64_state_t, FreeStates> xxh64;
  std::unique_ptr<XXH32_state_t, FreeStates> xxh32;
  std::unique_ptr<EVP_MD_CTX, FreeStates> openssl;
};

const std::vector<std::string>& shard_hash_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const HashKind& hash : kHashes) all.emplace_back(hash.name);
    return all;
  }();
  return names;
}

size_t shard_hash_digits(std::string_view name) {
  const HashKind* kind = find_hash(name);
  return kind == nullptr ? 0 : 2 * kind->bytes;
}

ShardHasher::ShardHasher(std::string_view name) : state_(std::make_unique<State>()) {
  state_->kind = find_hash(name);
  if (state_->kind == nullptr)
    fail(ExitCode::kUnusable, "[mds] the checksum \"{}\" is not known; there are {}", name,
         fmt::join(shard_hash_names(), ", "));
  switch (state_->kind->family) {
    case Family::kXxh3:
      state_->xxh3.reset(XXH3_createState());
      if (state_->kind->bytes == 16)
        XXH3_128bits_reset(state_->xxh3.get());
      else
        XXH3_64bits_reset(state_->xxh3.get());
      return;
    case Family::kXxh64:
      state_->xxh64.reset(XXH64_createState());
      XXH64_reset(state_->xxh64.get(), 0);
      return;
    case Family::kXxh32:
      state_->xxh32.reset(XXH32_createState());
      XXH32_reset(state_->xxh32.get(), 0);
      return;
    case Family::kOpenSsl: break;
  }
  state_->openssl.reset(EVP_MD_CTX_new());
  // A machine that allows only certified algorithms has no MD5.
  if (EVP_DigestInit_ex(state_->openssl.get(), state_->kind->digest(), nullptr) != 1)
    fail(ExitCode::kUnusable, "[mds] OpenSSL on this machine does not offer the checksum {}", name);
}

ShardHasher::~ShardHasher() = default;

void ShardHasher::update(const void* data, size_t num_bytes) {
  switch (state_->kind->family) {
    case Family::kXxh3:
      if (state_->kind->bytes == 16)
        XXH3_128bits_update(state_->xxh3.get(), data, num_bytes);
      else
        XXH3_64bits_update(state_->xxh3.get(), data, num_bytes);
      return;
    case Family::kXxh64: XXH64_update(state_->xxh64.get(), data, num_bytes); return;
    case Family::kXxh32: XXH32_update(state_->xxh32.get(), data, num_bytes); return;
    case Family::kOpenSsl:
      TYCHO_CHECK(EVP_DigestUpdate(state_->openssl.get(), data, num_bytes) == 1, "[mds] OpenSSL failed");
  }
}

std::string ShardHasher::hex() {
  std::array<uint8_t, EVP_MAX_MD_SIZE> bytes{};
  switch (state_->kind->family) {
    case Family::kXxh3:
      if (state_->kind->bytes == 16) {
        const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3.get());
        return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
      }
      return fmt::format("{:016x}", XXH3_64bits_digest(state_->xxh3.get()));
    case Family::kXxh64: return fmt::format("{:016x}", XXH64_digest(state_->xxh64.get()));
    case Family::kXxh32: return fmt::format("{:08x}", XXH32_digest(state_->xxh32.get()));
    case Family::kOpenSsl:
      TYCHO_CHECK(EVP_DigestFinal_ex(state_->openssl.get(), bytes.data(), nullptr) == 1,
                  "[mds] OpenSSL failed");
  }
  std::string text;
  for (size_t i = 0; i < state_->kind->bytes; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string shard_hash(std::string_view name, std::string_view bytes) {
  ShardHasher hasher(name);
  hasher.update(bytes.data(), bytes.size());
  return hasher.hex();
}

}  // namespace tycho
