// Reads Parquet files of which one byte is another one.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/random/philox.h"

namespace tycho::testing {

/// Calls `read(path)` on `times` damaged copies of a file. Each is read, or refused as kUnusable with its
/// path; returns how many were refused.
template <class Read>
int num_refused_of_damaged(const std::string& file, uint64_t times, Read read) {
  const TempDir temp;
  const std::string path = temp / "a.parquet", whole = read_file(file);
  int refused = 0;
  for (uint64_t i = 0; i < times; ++i) {
    const auto words = philox(whole.size(), i);
    std::string damaged = whole;
    damaged[words[0] % damaged.size()] = static_cast<char>(words[1]);
    write_text(path, damaged);
    try {
      read(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      EXPECT_NE(std::string_view(error.what()).find(path), std::string_view::npos) << error.what();
      ++refused;
    }
  }
  return refused;
}

}  // namespace tycho::testing
