// NCCL calls that start together.
#pragma once
#include <exception>
#include <utility>

#include "trainer/cuda_plugin/nccl_table.h"

namespace tycho {

/// Calls that are enqueued while this object lives start together when end() is called.
class NcclTogether {
 public:
  explicit NcclTogether(NcclTable::Group group) : group_(group) { nccl().begin_together(group); }
  ~NcclTogether() {
    if (group_ == nullptr) return;
    try {
      nccl().end_together(group_);
    } catch (const std::exception&) {  // a call failed before, and its Error is being thrown
    }
  }
  NcclTogether(const NcclTogether&) = delete;
  NcclTogether& operator=(const NcclTogether&) = delete;
  void end() { nccl().end_together(std::exchange(group_, nullptr)); }

 private:
  NcclTable::Group group_;
};

}  // namespace tycho
