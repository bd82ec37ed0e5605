// Memory that an operation on the stand-in reads or writes.
#pragma once
#include <cstdint>
#include <vector>

namespace standin {

/// `rows` rows of `row_bytes` each, `step_bytes` apart.
struct Access {
  const void* data = nullptr;
  int64_t rows = 0, row_bytes = 0, step_bytes = 0;
  bool written = false;
  double times = 1;  // share of the bytes that are touched; more than 1 where rows are read again
};
using Accesses = std::vector<Access>;

inline double bytes_of(const Accesses& all, bool written) {
  double sum = 0;
  for (const Access& one : all)
    if (one.data != nullptr && one.written == written)
      sum += one.times * static_cast<double>(one.rows) * static_cast<double>(one.row_bytes);
  return sum;
}

}  // namespace standin
