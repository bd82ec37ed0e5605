// ATen on one thread.
#pragma once
#include <ATen/Parallel.h>

namespace tycho {

/// Lets ATen and LAPACK use one thread while it lives, for small work between our kernels: OpenMP's threads
/// would wait for the cores on which our own wait for the next loop. Our kernels would use one thread, too.
class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace tycho
