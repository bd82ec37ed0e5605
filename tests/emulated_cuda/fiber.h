// Threads of a block as fibers: stacks of their own, and a switch between them that costs a few nanoseconds.
#pragma once
#include <cstddef>

namespace emulated {

inline constexpr size_t kStackBytes = 64 * 1024;

/// Keeps the caller's registers on its stack, that stack's end in *saved, and goes on where `next` was kept.
extern "C" void tycho_switch_stack(void** saved, void* next);

/// What tycho_switch_stack wants to start `entry` on an empty stack. `entry` never returns.
void* new_stack(void* stack, void (*entry)());

/// The lowest address of stack number `index` of 1024, in one piece of memory.
char* stack_memory(size_t index);

}  // namespace emulated
