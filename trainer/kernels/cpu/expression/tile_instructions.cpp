// Every instruction is a function over eight vectors, which stay in registers from one to the next: a
// function ends by calling the next one, which compilers make a jump. Every vector of all operands is read
// before its result is written.
#if defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize( \
    "schedule-insns")  // mixes the eight vectors of a function, whose instructions wait for each other
#endif
#include "trainer/kernels/cpu/expression/tile_instructions.h"

#include "trainer/kernels/cpu/expression/functions.h"
#include "trainer/kernels/cpu/expression/tile_steps.h"
#include "trainer/kernels/cpu/processor.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int64_t kAhead = 512;  // elements between those that are used and those that are asked for
constexpr int64_t kCacheLine = 64;

/// Asks for later elements of an array, which arrive while these are computed: in the first cache, to be
/// written, or in the second one.
template <class T, bool kIsFirst>
void ask(const TileStep* step, float* const* places, int64_t at, Vec v0, Vec v1, Vec v2, Vec v3, Vec v4,
         Vec v5, Vec v6, Vec v7) {
  const char* const later =
      reinterpret_cast<const char*>(reinterpret_cast<const T*>(places[step->a]) + at + kAhead);
#pragma GCC unroll 8
  for (int64_t line = 0; line < kStepElements * int64_t{sizeof(T)}; line += kCacheLine)
    if constexpr (kIsFirst)
      __builtin_prefetch(later + line, 1);
    else
      __builtin_prefetch(later + line, 0, 2);
  return step[1].function(step + 1, places, at, v0, v1, v2, v3, v4, v5, v6, v7);
}

/// Writes what is in registers to a bf16 array.
void write_half(const TileStep* step, float* const* places, int64_t at, Vec v0, Vec v1, Vec v2, Vec v3,
                Vec v4, Vec v5, Vec v6, Vec v7) {
  Bf16* to = reinterpret_cast<Bf16*>(places[step->a]) + at;
  store(to, v0, Full{}), store(to + kLanes, v1, Full{});
  store(to + 2 * kLanes, v2, Full{}), store(to + 3 * kLanes, v3, Full{});
  store(to + 4 * kLanes, v4, Full{}), store(to + 5 * kLanes, v5, Full{});
  store(to + 6 * kLanes, v6, Full{}), store(to + 7 * kLanes, v7, Full{});
  return step[1].function(step + 1, places, at, v0, v1, v2, v3, v4, v5, v6, v7);
}

void end(const TileStep*, float* const*, int64_t, Vec, Vec, Vec, Vec, Vec, Vec, Vec, Vec) {}

/// Returns body.operator()<from>(), with numbers read as tiles if `both` are numbers.
template <class Body>
TYCHO_SIMD TileFunction with_place(From from, bool both, const Body& body) {
  if (from == From::kKept) return body.template operator()<From::kKept>();
  if (from == From::kHalf) return body.template operator()<From::kHalf>();
  if (from == From::kMemory || both) return body.template operator()<From::kMemory>();
  return body.template operator()<From::kNumber>();
}

/// Returns the step of a function of one vector.
template <class F>
TYCHO_SIMD TileFunction one(const Placed& placed, F f) {
  if (placed.a == From::kHalf) return step_of<From::kHalf>(f);
  return placed.a == From::kKept ? step_of<From::kKept>(f) : step_of<From::kMemory>(f);
}

/// Returns the step of a function of two vectors.
template <class F>
TYCHO_SIMD TileFunction two(const Placed& placed, F f) {
  return with_place(
      placed.a, placed.b == From::kNumber, [&]<From a>() __attribute__((always_inline)) {
        return with_place(
            placed.b, false, [&]<From b>() __attribute__((always_inline)) {
              if constexpr (a == From::kNumber && b == From::kNumber)
                return TileFunction{};
              else
                return step_of<a, b>(f);
            });
      });
}

/// Returns the step of a function of three vectors, which reads numbers as tiles.
template <class F>
TYCHO_SIMD TileFunction three(const Placed& placed, F f) {
  const auto with = [&]<From a, From b>() __attribute__((always_inline)) {
    return placed.c == From::kKept ? step_of<a, b, From::kKept>(f) : step_of<a, b, From::kMemory>(f);
  };
  constexpr From kKept = From::kKept, kTiles = From::kMemory;
  if (placed.a == kKept)
    return placed.b == kKept ? with.template operator()<kKept, kKept>()
                             : with.template operator()<kKept, kTiles>();
  return placed.b == kKept ? with.template operator()<kTiles, kKept>()
                           : with.template operator()<kTiles, kTiles>();
}

struct Erf {
  static constexpr bool kInHalves = true;
  TYCHO_SIMD_MEMBER Vec operator()(Vec a) const { return error_function(a, exp_of_minus_square(a)); }
};
struct ErfOfBell {
  static constexpr bool kInHalves = true;
  TYCHO_SIMD_MEMBER Vec operator()(Vec a, Vec bell) const { return error_function(a, bell); }
};

TYCHO_SIMD Vec mask_of(Ints mask) { return (Vec)mask; }

/// Returns body(the basic operation).
template <class Body>
TYCHO_SIMD TileFunction with_basic(Op op, const Body& body) {
  switch (op) {
    case Op::kAdd: return body(Sum{});
    case Op::kSub: return body(Difference{});
    case Op::kMul: return body(Product{});
    default: return body(Quotient{});
  }
}

/// Returns the step of a product and an operation on it and what is in registers.
TileFunction fused_step(const Placed& placed) {
  return with_basic(placed.instruction.then, [&]<class Then>(Then) {
    const auto with = [&](auto f) __attribute__((always_inline)) {
      return with_place(
          placed.a, placed.b == From::kNumber, [&]<From a>() __attribute__((always_inline)) {
            return with_place(
                placed.b, false, [&]<From b>() __attribute__((always_inline)) {
                  constexpr bool kIsNone =
                      a == From::kKept || b == From::kKept || (a == From::kNumber && b == From::kNumber);
                  if constexpr (kIsNone)
                    return TileFunction{};
                  else
                    return step_of<a, b, From::kKept>(f);
                });
          });
    };
    if (placed.instruction.fusion == Fusion::kLeft)
      return with([](Vec a, Vec b, Vec c) { return Then()(a * b, c); });
    return with([](Vec a, Vec b, Vec c) { return Then()(c, a * b); });
  });
}

/// torch.pow has its own formulas for one exponent of all elements.
TileFunction power_step(const Placed& placed, const float* exponent) {
  const float y = exponent ? *exponent : 0.0f;
  if (y == 1) return one(placed, [](Vec a) { return a; });
  if (y == 2) return one(placed, [](Vec a) { return a * a; });
  if (y == 3) return one(placed, [](Vec a) { return a * a * a; });
  if (y == 0.5f) return one(placed, [](Vec a) { return square_root(a); });
  if (y == -0.5f) return one(placed, [](Vec a) { return 1.0f / square_root(a); });
  if (y == -1) return one(placed, [](Vec a) { return 1.0f / a; });
  if (y == -2) return one(placed, [](Vec a) { return 1.0f / (a * a); });
  return two(placed, [](Vec a, Vec b) { return power_each(a, b); });
}

/// Returns true for operations on three vectors.
bool has_three_operands(Op op) {
  return op == Op::kFma || op == Op::kClamp || op == Op::kWhere || op == Op::kEvery;
}

/// Returns the function of an instruction. `exponent` is the one number that kPow raises to, or null.
TileFunction function_of(const Placed& placed, const float* exponent) {
  if (placed.instruction.fusion != Fusion::kNone) return fused_step(placed);
  switch (placed.instruction.op) {
    case Op::kPow: return power_step(placed, exponent);
    case Op::kNeg: return one(placed, [](Vec a) { return -a; });
    case Op::kAbs: return one(placed, [](Vec a) { return magnitude(a); });
    case Op::kSign: return one(placed, [](Vec a) { return sign_of(a); });
    case Op::kFloor: return one(placed, [](Vec a) { return round_down(a); });
    case Op::kSqrt: return one(placed, [](Vec a) { return square_root(a); });
    case Op::kRsqrt: return one(placed, [](Vec a) { return 1.0f / square_root(a); });
    case Op::kExp: return one(placed, [](Vec a) { return wide_exp(a); });
    case Op::kLog: return one(placed, [](Vec a) { return logarithm(a); });
    case Op::kTanh: return one(placed, [](Vec a) { return hyperbolic_tangent(a); });
    case Op::kSigmoid: return one(placed, [](Vec a) { return sigmoid(a); });
    case Op::kErf: return placed.instruction.then == Op::kExp ? two(placed, ErfOfBell{}) : one(placed, Erf{});
    case Op::kMin: return two(placed, [](Vec a, Vec b) { return smaller_of(a, b); });
    case Op::kMax: return two(placed, [](Vec a, Vec b) { return larger_of(a, b); });
    case Op::kLt: return two(placed, [](Vec a, Vec b) { return mask_of(a < b); });
    case Op::kLe: return two(placed, [](Vec a, Vec b) { return mask_of(a <= b); });
    case Op::kGt: return two(placed, [](Vec a, Vec b) { return mask_of(a > b); });
    case Op::kGe: return two(placed, [](Vec a, Vec b) { return mask_of(a >= b); });
    case Op::kEq: return two(placed, [](Vec a, Vec b) { return mask_of(a == b); });
    case Op::kNe: return two(placed, [](Vec a, Vec b) { return mask_of(a != b); });
    case Op::kAnd: return two(placed, [](Vec a, Vec b) { return mask_of((Ints)a & (Ints)b); });
    case Op::kOr: return two(placed, [](Vec a, Vec b) { return mask_of((Ints)a | (Ints)b); });
    case Op::kNot: return one(placed, [](Vec a) { return mask_of(~(Ints)a); });
    case Op::kFma: return three(placed, [](Vec a, Vec b, Vec c) { return fused_multiply_add(a, b, c); });
    case Op::kClamp: return three(placed, [](Vec a, Vec b, Vec c) { return smaller_of(larger_of(a, b), c); });
    case Op::kWhere:
    case Op::kEvery: return three(placed, [](Vec a, Vec b, Vec c) { return choose((Ints)a, b, c); });
    case Op::kBroadcast: return one(placed, [](Vec a) { return a; });
    default:
      return with_basic(placed.instruction.op, [&]<class Basic>(Basic basic) { return two(placed, basic); });
  }
}

}  // namespace

bool reads_in_place(const TileProgram& program, uint16_t array) {
  bool is_written = false;
  for (int64_t i = 0; i < program.num_instructions; ++i) {
    const TileInstruction& x = program.instructions[i];
    const bool is_read = x.a == array || x.b == array || x.c == array;
    const bool has_three = x.fusion == Fusion::kNone && has_three_operands(x.op);
    if (is_read && (is_written || has_three)) return false;
    is_written = is_written || x.to == array;
  }
  return true;
}

void write_steps(const TileProgram& program, const From* from, const bool* streams, TileStep* steps) {
  const int32_t first_constant = program.num_arrays + program.num_temporaries;
  const auto place = [&](uint16_t number) { return number == kRegisters ? From::kKept : from[number]; };
  const auto placed = [&](int32_t i) {
    const TileInstruction& x = program.instructions[i];
    return Placed{x, place(x.a), place(x.b), place(x.c)};
  };
  int32_t num_streams = 0, num_asked = 0;
  for (int32_t i = 0; i < program.num_arrays; ++i) num_streams += streams[i];
  uint16_t array = 0;
  // On AMD's processors (Zen 4) requests for the first cache cost more than they save.
  const bool second = is_amd();
  const auto ask_for_next = [&] {
    while (!streams[array]) ++array;
    const TileFunction of_half = second ? ask<Bf16, false> : ask<Bf16, true>,
                       of_fp32 = second ? ask<float, false> : ask<float, true>;
    *steps++ = {.function = from[array] == From::kHalf ? of_half : of_fp32, .a = array};
    ++array, ++num_asked;
  };
  for (int32_t i = 0; i < program.num_instructions; ++i) {
    // Spreads them over the program: memory delivers while it computes.
    while (num_asked * program.num_instructions <= i * num_streams && num_asked < num_streams) ask_for_next();
    TileStep pair;
    if (i + 1 < program.num_instructions) pair = pair_step(placed(i), placed(i + 1));
    if (pair.function != nullptr) ++i;
    const TileInstruction& x = program.instructions[i];
    const bool has_exponent = x.b != kRegisters && x.b >= first_constant;
    const float* exponent = has_exponent ? program.constants + (x.b - first_constant) : nullptr;
    const bool narrows = place(x.to) == From::kHalf;
    TileStep& step = *steps++;
    step = pair.function ? pair : TileStep{function_of(placed(i), exponent), x.to, x.a, x.b, x.c};
    if (!narrows) continue;
    step.to = kRegisters;
    *steps++ = {.function = write_half, .a = x.to};
  }
  while (num_asked < num_streams) ask_for_next();
  *steps = {end};
}

void run_steps(const TileStep* steps, float* const* places) {
  const Vec none{};
  for (int64_t at = 0; at < kTile; at += kStepElements)
    steps->function(steps, places, at, none, none, none, none, none, none, none, none);
}

}  // namespace tycho::TYCHO_ISA
