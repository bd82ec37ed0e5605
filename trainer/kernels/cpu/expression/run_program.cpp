// Programs on the CPU: every instruction runs over a tile that stays in the first cache, then the next.
#include "trainer/kernels/cpu/expression/tile_instructions.h"
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/weights.h"

namespace tycho::TYCHO_ISA {
namespace {

// Small enough that a CPU works on the next instruction while it still divides for this one.
constexpr int64_t kTile = 128;
constexpr int64_t kAhead = 4 * kTile;  // elements between those that are used and those that are asked for
constexpr int64_t kCacheLine = 64;

/// Returns fp32 memory of an array that instructions may use in place, or null when a tile of it is
/// converted.
float* in_place(const ProgramMemory& array) {
  if (array.weights) {
    if (array.weights->dtype == Dtype::kFp32) return static_cast<float*>(array.weights->params);
    return array.weights->master;
  }
  return array.dtype == Dtype::kFp32 && array.step == 1 ? static_cast<float*>(array.data) : nullptr;
}

template <class T>
void widen_tile(const T* from, int64_t count, float* to) {
  for_lanes(count, [&](int64_t i, auto lanes) { store(to + i, load(from + i, lanes), lanes); });
}

/// Fills a tile's lanes with the number of a row.
void spread(const ProgramMemory& array, int64_t row, float* to) {
  const int64_t at = row * array.row_step;
  const float number = array.dtype == Dtype::kFp32
                           ? static_cast<const float*>(array.data)[at]
                           : load(static_cast<const Bf16*>(array.data) + at, Part{1})[0];
  store(to, broadcast(number), Full{});
}

class Tiles {
 public:
  Tiles(RowsShape shape, const TileProgram& program, const ProgramMemory* arrays)
      : shape_(shape), program_(program), arrays_(arrays) {
    first_constant_ = program.num_arrays + program.num_temporaries;
    num_places_ = first_constant_ + program.num_constants;
    const int64_t lane_bytes = program.num_constants * kLanes * 4;
    auto* memory = static_cast<char*>(
        caller_memory(lane_bytes + program.num_instructions * static_cast<int64_t>(sizeof(TileFunction))));
    auto* lanes = reinterpret_cast<float*>(memory);
    for (int64_t i = 0; i < program.num_constants; ++i)
      store(lanes + i * kLanes, broadcast(program.constants[i]), Full{});
    auto* loops = reinterpret_cast<TileFunction*>(memory + lane_bytes);
    for (int64_t i = 0; i < program.num_instructions; ++i) {
      const TileInstruction& instruction = program.instructions[i];
      const int64_t constant = instruction.b - first_constant_;
      loops[i] = tile_function(instruction, constant >= 0 ? program.constants + constant : nullptr);
    }
    constants_ = lanes, loops_ = loops;
  }

  void run() const {
    if (shape_.rows == 1)
      return for_row_blocks(shape_.dim, 1,
                            [&](int64_t first, int64_t count) { run_row(0, first, first + count); });
    for_row_blocks(shape_.rows, shape_.dim, [&](int64_t first, int64_t count) {
      for (int64_t row = first; row < first + count; ++row) run_row(row, 0, shape_.dim);
    });
  }

 private:
  static bool is_used(const ProgramMemory& array) { return array.read || array.written; }
  /// Runs the program on elements [begin, end) of a row, in this thread's memory: the table of places, then
  /// temporary tiles, then tiles of arrays that are converted.
  void run_row(int64_t row, int64_t begin, int64_t end) const {
    const int64_t table_bytes = ceil_div(num_places_ * static_cast<int64_t>(sizeof(TileOperand)), 64) * 64;
    auto* memory = static_cast<char*>(thread_memory(table_bytes + first_constant_ * kTile * 4));
    auto* places = reinterpret_cast<TileOperand*>(memory);
    auto* tiles = reinterpret_cast<float*>(memory + table_bytes);
    for (int64_t i = 0; i < first_constant_; ++i) places[i] = {tiles + i * kTile, kLanes};
    for (int64_t i = 0; i < program_.num_constants; ++i)
      places[first_constant_ + i] = {constants_ + i * kLanes, 0};
    for (int64_t i = 0; i < program_.num_arrays; ++i) {
      if (arrays_[i].step != 0 || !arrays_[i].read) continue;
      spread(arrays_[i], row, tiles + i * kTile);
      places[i].step = 0;
    }
    for (int64_t at = begin; at < end; at += kTile)
      run_tile(row, at, smaller(kTile, end - at), places, tiles);
  }

  void run_tile(int64_t row, int64_t at, int64_t count, TileOperand* places, float* tiles) const {
    for (int64_t i = 0; i < program_.num_arrays; ++i) read_array(i, row, at, count, places, tiles);
    for (int64_t i = 0; i < program_.num_instructions; ++i)
      loops_[i](program_.instructions[i], places, count);
    for (int64_t i = 0; i < program_.num_arrays; ++i)
      if (arrays_[i].written) write_array(i, row, at, count, tiles);
  }

  void read_array(int64_t index, int64_t row, int64_t at, int64_t count, TileOperand* places,
                  float* tiles) const {
    const ProgramMemory& array = arrays_[index];
    if (!is_used(array) || array.step == 0) return;
    const int64_t element = row * array.row_step + at;
    if (float* memory = in_place(array)) {
      places[index].at = memory + element;
      ask_for(reinterpret_cast<const char*>(memory + element), 4);
    } else if (array.read) {
      const auto* data =
          static_cast<const Bf16*>(array.weights ? array.weights->params : array.data) + element;
      ask_for(reinterpret_cast<const char*>(data), 2);
      widen_tile(data, count, tiles + index * kTile);
    }
  }

  /// Asks for the memory of later elements, which arrives while these are computed.
  static void ask_for(const char* memory, int64_t bytes) {
    for (int64_t line = 0; line < kTile * bytes; line += kCacheLine)
      __builtin_prefetch(memory + kAhead * bytes + line, 1);
  }

  void write_array(int64_t index, int64_t row, int64_t at, int64_t count, const float* tiles) const {
    const ProgramMemory& array = arrays_[index];
    const float* memory = in_place(array);
    const float* values = memory ? memory + row * array.row_step + at : tiles + index * kTile;
    if (array.weights) {
      if (array.weights->dtype == Dtype::kFp32) return;
      return with_weight_form<Weights>(*array.weights, [&](const auto& weights) {
        for_lanes(count,
                  [&](int64_t i, auto lanes) { weights.write(at + i, load(values + i, lanes), lanes); });
      });
    }
    if (memory) return;
    Bf16* out = static_cast<Bf16*>(array.data) + row * array.row_step + at;
    for_lanes(count, [&](int64_t i, auto lanes) { store(out + i, load(values + i, lanes), lanes); });
  }

  const RowsShape shape_;
  const TileProgram& program_;
  const ProgramMemory* arrays_;
  const float* constants_ = nullptr;     // kLanes of each
  const TileFunction* loops_ = nullptr;  // of each instruction
  int64_t first_constant_ = 0, num_places_ = 0;
};

}  // namespace

void run_program(RowsShape shape, const TileProgram& program, const ProgramMemory* arrays, Stream) {
  if (shape.rows > 0 && shape.dim > 0) Tiles(shape, program, arrays).run();
}

}  // namespace tycho::TYCHO_ISA
