// What the compiler's instrumentation of kernels calls: memory.cpp looks at reads and writes, and what C++
// leaves undefined is an error that names kernel, block and thread.
#include <cstddef>
#include <cstdint>

#include "tests/emulated_cuda/memory.h"

namespace {

struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct TypeMismatch {
  SourceLocation at;
  const void* type;
  unsigned char log_alignment, kind;
};

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define TYCHO_ACCESS(size)                                               \
  void __tsan_read##size(void* at) { emulated::touch(at, size, false); } \
  void __tsan_write##size(void* at) { emulated::touch(at, size, true); }
TYCHO_ACCESS(1)
TYCHO_ACCESS(2)
TYCHO_ACCESS(4)
TYCHO_ACCESS(8)
TYCHO_ACCESS(16)
#undef TYCHO_ACCESS
void __tsan_unaligned_read2(void* at) { emulated::touch(at, 2, false); }
void __tsan_unaligned_read4(void* at) { emulated::touch(at, 4, false); }
void __tsan_unaligned_read8(void* at) { emulated::touch(at, 8, false); }
void __tsan_unaligned_read16(void* at) { emulated::touch(at, 16, false); }
void __tsan_unaligned_write2(void* at) { emulated::touch(at, 2, true); }
void __tsan_unaligned_write4(void* at) { emulated::touch(at, 4, true); }
void __tsan_unaligned_write8(void* at) { emulated::touch(at, 8, true); }
void __tsan_unaligned_write16(void* at) { emulated::touch(at, 16, true); }
void __tsan_read_range(void* at, size_t size) { emulated::touch(at, size, false); }
void __tsan_write_range(void* at, size_t size) { emulated::touch(at, size, true); }
void* __tsan_memcpy(void* to, const void* from, size_t size) {
  emulated::touch(from, size, false);
  emulated::touch(to, size, true);
  return __builtin_memcpy(to, from, size);
}
void* __tsan_memset(void* to, int value, size_t size) {
  emulated::touch(to, size, true);
  return __builtin_memset(to, value, size);
}

void __ubsan_handle_type_mismatch_v1(const TypeMismatch* data, uintptr_t at) {
  emulated::fault("at %s:%u touches %p, where %u bytes want an address that they divide", data->at.file,
                  data->at.line, reinterpret_cast<void*>(at), 1u << data->log_alignment);
}
#define TYCHO_UNDEFINED(name, what)                                            \
  void __ubsan_handle_##name(const SourceLocation* at, uintptr_t, uintptr_t) { \
    emulated::fault("at %s:%u " what, at->file, at->line);                     \
  }
TYCHO_UNDEFINED(add_overflow, "adds beyond the type")
TYCHO_UNDEFINED(sub_overflow, "subtracts beyond the type")
TYCHO_UNDEFINED(mul_overflow, "multiplies beyond the type")
TYCHO_UNDEFINED(divrem_overflow, "divides by zero or beyond the type")
TYCHO_UNDEFINED(shift_out_of_bounds, "shifts by more than the type has")
void __ubsan_handle_negate_overflow(const SourceLocation* at, uintptr_t) {
  emulated::fault("at %s:%u negates beyond the type", at->file, at->line);
}
void __ubsan_handle_out_of_bounds(const SourceLocation* at, uintptr_t index) {
  emulated::fault("at %s:%u takes element %zu of an array that has fewer", at->file, at->line,
                  static_cast<size_t>(index));
}
#undef TYCHO_UNDEFINED
}
