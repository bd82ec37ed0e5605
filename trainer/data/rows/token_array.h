// Token ids of a batch, in the type in which they are copied to the device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tycho {

inline constexpr int32_t kNoTarget = -100;  // ignored by the loss: kIgnoredTarget of trainer/kernels

/// Size of the largest vocabulary whose ids travel as uint16: no two numbers from kNoTarget to the last id
/// have the same low 16 bits.
inline constexpr int64_t kMostNarrowIds = 65536 + kNoTarget;

/// Ids below the size of a vocabulary, and kNoTarget. They are stored as their low 16 bits where the
/// vocabulary allows it, else as int32. numbers_on (trainer/kernels/host_copies.h) widens them on the device.
class TokenArray {
 public:
  TokenArray() = default;  // none
  /// Makes `count` copies of `filler`, an id or kNoTarget.
  TokenArray(int64_t vocab_size, size_t count, int32_t filler);

  bool is_narrow() const { return ids_.index() == 0; }
  size_t size() const;
  bool empty() const { return size() == 0; }
  int32_t operator[](size_t i) const;
  /// Returns all ids as int32.
  std::vector<int32_t> widened() const;

  void set(size_t i, int32_t id);
  /// Overwrites ids [at, at + ids.size()).
  void put(size_t at, std::span<const int32_t> ids);
  /// Copies `count` ids of `from`, starting at `begin`, to `at`. Requires that both arrays were made for the
  /// same vocabulary.
  void put(size_t at, const TokenArray& from, size_t begin, size_t count);

  /// Calls `call` with std::vector<uint16_t>& or std::vector<int32_t>&.
  template <class Call>
  decltype(auto) visit(Call&& call) {
    return std::visit(std::forward<Call>(call), ids_);
  }
  template <class Call>
  decltype(auto) visit(Call&& call) const {
    return std::visit(std::forward<Call>(call), ids_);
  }
  /// Returns the ids as std::vector<Id>. Requires that Id is the stored type.
  template <class Id>
  std::vector<Id>& as() {
    return std::get<std::vector<Id>>(ids_);
  }

  bool operator==(const TokenArray&) const = default;

 private:
  std::variant<std::vector<uint16_t>, std::vector<int32_t>> ids_;
};

}  // namespace tycho
