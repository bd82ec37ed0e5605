// Included before a program's text: its kernel is launched by the emulator, which sees every access.
#pragma once
#include <cuda_runtime.h>

#define __fmaf_rn(a, b, c) __builtin_fmaf(a, b, c)
#define __float_as_int(x) __builtin_bit_cast(int, x)
#define __int_as_float(bits) __builtin_bit_cast(float, bits)

namespace standin {

template <class Program>
void run_emulated(void (*kernel)(Program), const void* arguments, unsigned blocks, unsigned threads) {
  emulated::launch("tycho_program", reinterpret_cast<const void*>(kernel), kernel,
                   std::source_location::current(), dim3(blocks),
                   dim3(threads))(*static_cast<const Program*>(arguments));
}

}  // namespace standin

#define STANDIN_RUN ::standin::run_emulated
