// Instructions of a program over tiles of elements. Kernels of every instruction set include it, so it has
// plain data only.
#pragma once
#include <cstdint>

#include "trainer/expression/operations.h"

namespace tycho {

/// Shapes of two operations in one instruction; each result is rounded.
enum class Fusion : uint8_t {
  kNone,   // op(a, b, c)
  kLeft,   // (a op b) then c
  kRight,  // c then (a op b)
};

/// Place that stands for registers: they hold the result of the instruction before.
inline constexpr uint16_t kRegisters = 0xffff;

/// Places are numbered: arrays, then temporary tiles, then constants. An instruction leaves its result in
/// registers, and in `to` unless that is kRegisters. Booleans are 32 equal bits of a lane. kBroadcast copies
/// a. Fused: op is kMul, `then` kAdd to kDiv, c is kRegisters, a and b are not. kErf `then` kExp: b is e^-a².
struct TileInstruction {
  Op op = Op::kAdd;
  Op then = Op::kAdd;
  Fusion fusion = Fusion::kNone;
  uint16_t to = 0;
  uint16_t a = 0, b = 0, c = 0;
};

/// A program as kernels see it.
struct TileProgram {
  const TileInstruction* instructions = nullptr;
  int32_t num_instructions = 0;
  int32_t num_arrays = 0, num_temporaries = 0, num_constants = 0;
  const float* constants = nullptr;
};

}  // namespace tycho
