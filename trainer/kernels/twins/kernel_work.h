// Declares, beside its signature, what each kernel of the table reads, writes and multiplies. A checker of
// orders, a record of launches and estimates of time take it from here. Torch-free.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "trainer/kernels/twins/accesses.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Work of one call of a kernel. An argument that is updated in place is read and written. Null pointers have
/// no access.
struct KernelWork {
  std::vector<Access> accesses;
  double flops = 0;  // of products; the arithmetic of other kernels hides behind their memory

  KernelWork() = default;
  KernelWork(std::initializer_list<Access> all) {
    for (const Access& one : all) add(one);
  }
  void add(const Access& access) {
    if (access.data != nullptr) accesses.push_back(access);
  }
  /// Adds an access that reads and writes, or only writes unless `reads`.
  void update(Access access, bool reads = true) {
    if (reads) add(access);
    access.written = true;
    add(access);
  }
  double bytes_read() const { return bytes(false); }
  double bytes_written() const { return bytes(true); }

 private:
  double bytes(bool written) const;
};

/// A kernel's arguments give its work; those of the size of a workspace, that size.
template <class Entry>
struct DeclaredWork;
template <class... Args>
struct DeclaredWork<void (*)(Args...)> {
  using Function = KernelWork(Args...) const;
};
template <class... Args>
struct DeclaredWork<int64_t (*)(Args...)> {
  using Function = int64_t(Args...) const;
};
#define TYCHO_DECLARE_WORK(entry) DeclaredWork<decltype(KernelTable::entry)>::Function entry;

/// Declarations of all entries of a table, each by the entry's name.
class WorkOf {
 public:
  explicit WorkOf(const KernelTable& table) : table_(table) {}
  TYCHO_KERNELS(TYCHO_DECLARE_WORK)
  TYCHO_CPU_ONLY_KERNELS(TYCHO_DECLARE_WORK)

 private:
  const KernelTable& table_;
};

/// Returns the FLOPs of a product: a multiplication and an addition for each row, column and element between.
double matmul_flops(const MatmulShape& shape);
/// Returns how many pairs of a query and a key attention multiplies, where queries see no later keys, and
/// none that are more than `window` before them (negative: all earlier ones). Pairs on the edges count half.
double seen_pairs(const TokenSpan& queries, const TokenSpan& keys, int64_t window);
/// FLOPs of attention for each seen pair and element of all heads: two products forward, five backward.
inline constexpr double kAttentionFlops = 4, kAttentionBackwardFlops = 10;

}  // namespace tycho
