// Rows that cannot be used, counted where the user asked to skip them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {

/// Thrown by a reader that can continue with the next row.
class BadRow : public Error {
 public:
  explicit BadRow(const std::string& message) : Error(message, ExitCode::kUnusable) {}
};

struct SkippedRows {
  static constexpr size_t kReasonsKept = 3;
  int64_t count = 0;
  std::vector<std::string> reasons;  // messages of the first kReasonsKept Errors

  void add(const std::string& reason);
  void add(const SkippedRows& more);
  /// Message for users, with `count` and the reasons; "" when nothing was skipped.
  std::string text() const;
};

}  // namespace tycho
