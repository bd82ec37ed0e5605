// Holds kernels to what they declare (trainer/kernels/twins/kernel_work.h): during a call they touch nothing
// else of tensors, and after it they have touched all of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/kernels/twins/kernel_work.h"

namespace emulated {

/// A call is checked until the end of this object's life.
class DeclaredCall {
 public:
  explicit DeclaredCall(tycho::KernelWork work);
  ~DeclaredCall();
  DeclaredCall(const DeclaredCall&) = delete;
  DeclaredCall& operator=(const DeclaredCall&) = delete;

  /// Describes the first declared bytes that no thread touched; "" if there are none. Workspaces, and memory
  /// of which only a share is declared, may stay untouched.
  std::string untouched() const;

 private:
  tycho::KernelWork work_;
};

/// True if the current call declares the access, or if no call is checked. `written_before`: the call itself
/// wrote these bytes, so that it may read them back.
bool is_declared(uintptr_t at, size_t size, bool write, bool written_before);
/// Returns the first turn of the current call.
uint32_t first_turn_of_call();

}  // namespace emulated
