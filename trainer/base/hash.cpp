// XXH3-128 through libxxhash, with the widest vectors of the machine where the library can choose.
#include "trainer/base/hash.h"

#include <fmt/format.h>
#ifdef TYCHO_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>  // its macros take the place of the functions of the same names
#else
#include <xxhash.h>
#endif

namespace tycho {
namespace {

std::string hex_text(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

struct Hasher::State {
  std::unique_ptr<XXH3_state_t, FreeState> xxh{XXH3_createState()};
};

std::string hash_hex(std::string_view bytes) { return hex_text(XXH3_128bits(bytes.data(), bytes.size())); }

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh.get()); }
Hasher::~Hasher() = default;

void Hasher::update(const void* data, size_t num_bytes) {
  XXH3_128bits_update(state_->xxh.get(), data, num_bytes);
}

std::string Hasher::hex() const { return hex_text(XXH3_128bits_digest(state_->xxh.get())); }

}  // namespace tycho
