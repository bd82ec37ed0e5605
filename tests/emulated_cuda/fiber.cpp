// The switch between stacks, in the instructions of x86-64 and of 64-bit ARM.
#include "tests/emulated_cuda/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
constexpr size_t kKeptWords = 6;
asm(R"(
.text
.hidden tycho_switch_stack
.globl tycho_switch_stack
.type tycho_switch_stack, @function
tycho_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tycho_switch_stack, .-tycho_switch_stack
)");
#elif defined(__aarch64__)
constexpr size_t kKeptWords = 22;
asm(R"(
.text
.hidden tycho_switch_stack
.globl tycho_switch_stack
.type tycho_switch_stack, @function
tycho_switch_stack:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp d8, d9, [sp, #80]
  stp d10, d11, [sp, #96]
  stp d12, d13, [sp, #112]
  stp d14, d15, [sp, #128]
  stp x29, x30, [sp, #160]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp d8, d9, [sp, #80]
  ldp d10, d11, [sp, #96]
  ldp d12, d13, [sp, #112]
  ldp d14, d15, [sp, #128]
  ldp x29, x30, [sp, #160]
  add sp, sp, #176
  ret
.size tycho_switch_stack, .-tycho_switch_stack
)");
#else
#error "tycho_switch_stack is written for x86-64 and 64-bit ARM"
#endif

namespace emulated {

void* new_stack(void* stack, void (*entry)()) {
  auto* const end = reinterpret_cast<void**>(static_cast<char*>(stack) + kStackBytes);
#if defined(__x86_64__)
  // After `ret` the stack is as a called function finds it: 8 below a multiple of 16.
  void** const kept = end - 2 - kKeptWords;
  std::memset(kept, 0, kKeptWords * sizeof(void*));
  kept[kKeptWords] = reinterpret_cast<void*>(entry);
  kept[kKeptWords + 1] = nullptr;
#else
  void** const kept = end - kKeptWords;
  std::memset(kept, 0, kKeptWords * sizeof(void*));
  kept[21] = reinterpret_cast<void*>(entry);  // x30
#endif
  return kept;
}

char* stack_memory(size_t index) {
  static char* const memory = [] {
    void* const made = mmap(nullptr, 1024 * kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) {
      std::fputs("[emulated CUDA] no memory for the stacks of a block's threads\n", stderr);
      std::abort();
    }
    return static_cast<char*>(made);
  }();
  return memory + index * kStackBytes;
}

}  // namespace emulated
