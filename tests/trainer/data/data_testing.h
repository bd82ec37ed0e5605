// What the tests of trainer/data share: a folder of their own, golden files, and checks of errors.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho::testing {

/// A fresh folder that is deleted with the object.
class TempDir {
 public:
  TempDir() {
    std::string pattern = std::filesystem::temp_directory_path() / "tycho-data-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string golden(const std::string& name) { return std::string(TYCHO_GOLDEN_DIR) + "/" + name; }

inline void write_text(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// The bytes of a number, as MDS columns "int" and many headers have them.
template <class T>
std::string bytes_of_number(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

/// CRC-32 of numbers as 64-bit words, little endian.
inline uint32_t crc32_of(const std::vector<uint32_t>& numbers) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
      made[byte] = crc;
    }
    return made;
  }();
  uint32_t crc = UINT32_MAX;
  for (const uint64_t number : numbers)
    for (int byte = 0; byte < 8; ++byte) crc = crc >> 8 ^ table[(crc ^ number >> 8 * byte) & 0xFF];
  return ~crc;
}

/// Runs `act` and expects an Error of this code whose text has all these parts.
template <class Act>
void expect_error(ExitCode code, std::initializer_list<std::string_view> parts, Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string_view part : parts)
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
          << part << " in: " << error.what();
    return;
  }
  ADD_FAILURE() << "no Error was thrown";
}

}  // namespace tycho::testing
