// Programs on the CPU: every instruction runs over a tile that stays in the first cache, then the next.
#include "trainer/kernels/cpu/expression/tile_instructions.h"
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/weights.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int64_t kCachedBytes = 1 << 20;  // of all arrays: they stay in the second cache of a core

/// Returns fp32 memory of an array that instructions may use in place, or null.
float* in_place(const ProgramMemory& array) {
  if (array.weights) {
    if (array.weights->dtype == Dtype::kFp32) return static_cast<float*>(array.weights->params);
    return array.weights->master;
  }
  return array.dtype == Dtype::kFp32 && array.step == 1 ? static_cast<float*>(array.data) : nullptr;
}

/// Returns bf16 memory of an array, or null when it is one number, fp32 or weights.
Bf16* bf16_memory(const ProgramMemory& array) {
  return array.weights || array.dtype == Dtype::kFp32 || array.step != 1 ? nullptr
                                                                         : static_cast<Bf16*>(array.data);
}

template <class A, class B>
void copy_tile(const A* from, int64_t count, B* to) {
  for_lanes(count, [&](int64_t i, auto lanes) { store(to + i, load(from + i, lanes), lanes); });
}

void fill_tile(float number, float* to) {
  for (int64_t i = 0; i < kTile; i += kLanes) store(to + i, broadcast(number), Full{});
}

/// Returns the number of a row.
float number_of(const ProgramMemory& array, int64_t row) {
  const int64_t at = row * array.row_step;
  return array.dtype == Dtype::kFp32 ? static_cast<const float*>(array.data)[at]
                                     : load(static_cast<const Bf16*>(array.data) + at, Part{1})[0];
}

class Tiles {
 public:
  Tiles(RowsShape shape, const TileProgram& program, const ProgramMemory* arrays)
      : shape_(shape), program_(program), arrays_(arrays) {
    first_constant_ = program.num_arrays + program.num_temporaries;
    num_places_ = first_constant_ + program.num_constants;
    const int64_t constant_bytes = program.num_constants * kTile * 4;
    const int64_t step_bytes = most_steps(program) * static_cast<int64_t>(sizeof(TileStep));
    const int64_t advance_bytes = program.num_arrays * static_cast<int64_t>(sizeof(int64_t));
    auto* memory = static_cast<char*>(
        caller_memory(constant_bytes + step_bytes + advance_bytes + num_places_ + program.num_arrays));
    constants_ = reinterpret_cast<float*>(memory);
    for (int64_t i = 0; i < program.num_constants; ++i)
      fill_tile(program.constants[i], constants_ + i * kTile);
    auto* advances = reinterpret_cast<int64_t*>(memory + constant_bytes + step_bytes);
    auto* from = reinterpret_cast<From*>(advances + program.num_arrays);
    auto* streams = reinterpret_cast<bool*>(from + num_places_);
    const int64_t bytes = shape.rows * shape.dim * program.num_arrays * static_cast<int64_t>(sizeof(float));
    for (int64_t i = 0; i < num_places_; ++i) from[i] = i >= first_constant_ ? From::kNumber : From::kMemory;
    for (uint16_t i = 0; i < program.num_arrays; ++i) {
      if (arrays[i].step == 0)
        from[i] = From::kNumber;
      else if (bf16_memory(arrays[i]) && reads_in_place(program, i))
        from[i] = From::kHalf;
      const bool is_tile = is_used(arrays[i]) && arrays[i].step == 1;
      const bool is_memory = is_tile && (from[i] == From::kHalf || in_place(arrays[i]) != nullptr);
      streams[i] = is_memory && bytes > kCachedBytes;
      advances[i] = !is_memory ? 0 : from[i] == From::kHalf ? kTile / 2 : kTile;
      is_in_place_ = is_in_place_ && is_memory == is_tile;
    }
    from_ = from, advances_ = advances;
    auto* steps = reinterpret_cast<TileStep*>(memory + constant_bytes);
    write_steps(program, from, streams, steps);
    steps_ = steps;
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
  static bool has_bf16_weights(const ProgramMemory& array) {
    return array.weights && array.weights->dtype == Dtype::kBf16;
  }

  /// Runs the program on elements [begin, end) of a row, in this thread's memory: the table of places, then
  /// temporary tiles and tiles of arrays that are not used in place.
  void run_row(int64_t row, int64_t begin, int64_t end) const {
    const int64_t table_bytes = ceil_div(num_places_ * static_cast<int64_t>(sizeof(float*)), 64) * 64;
    auto* memory = static_cast<char*>(thread_memory(table_bytes + first_constant_ * kTile * 4));
    auto* places = reinterpret_cast<float**>(memory);
    auto* tiles = reinterpret_cast<float*>(memory + table_bytes);
    for (int64_t i = 0; i < num_places_; ++i)
      places[i] = i < first_constant_ ? tiles + i * kTile : constants_ + (i - first_constant_) * kTile;
    for (int64_t i = 0; i < program_.num_arrays; ++i)
      if (arrays_[i].step == 0 && arrays_[i].read) fill_tile(number_of(arrays_[i], row), places[i]);
    if (is_in_place_) begin = run_whole_tiles(row, begin, end, places, tiles);
    for (int64_t at = begin; at < end; at += kTile)
      run_tile(row, at, smaller(kTile, end - at), places, tiles);
  }

  /// Runs the program on the whole tiles of arrays that are all used in place: places move, and only
  /// bf16 weights are copied, from their masters. Returns where they end.
  int64_t run_whole_tiles(int64_t row, int64_t begin, int64_t end, float** places, float* tiles) const {
    read_arrays(row, begin, kTile, places, tiles);
    for (; begin + kTile <= end; begin += kTile) {
      run_steps(steps_, places);
      for (int64_t i = 0; i < program_.num_arrays; ++i) {
        if (has_bf16_weights(arrays_[i]) && arrays_[i].written)
          write_array(i, row * arrays_[i].row_step + begin, kTile, places[i]);
        places[i] += advances_[i];
      }
    }
    return begin;
  }

  /// Instructions run over a whole tile, whatever the rest of a row is.
  void run_tile(int64_t row, int64_t at, int64_t count, float** places, float* tiles) const {
    read_arrays(row, at, count, places, tiles);
    run_steps(steps_, places);
    for (int64_t i = 0; i < program_.num_arrays; ++i)
      if (arrays_[i].written) write_array(i, row * arrays_[i].row_step + at, count, places[i]);
  }

  void read_arrays(int64_t row, int64_t at, int64_t count, float** places, float* tiles) const {
    for (int64_t i = 0; i < program_.num_arrays; ++i)
      if (is_used(arrays_[i]) && arrays_[i].step == 1)
        read_array(i, row * arrays_[i].row_step + at, count, places[i], tiles + i * kTile);
  }

  /// Copies a part of a tile of bf16 that is used in place; whole ones stay where they are.
  static void read_half(const ProgramMemory& array, int64_t at, int64_t count, float*& place, float* tile) {
    Bf16* memory = bf16_memory(array) + at;
    place = count == kTile ? reinterpret_cast<float*>(memory) : tile;
    if (place == tile && array.read) __builtin_memcpy(tile, memory, count * sizeof(Bf16));
  }

  void read_array(int64_t number, int64_t at, int64_t count, float*& place, float* tile) const {
    const ProgramMemory& array = arrays_[number];
    if (from_[number] == From::kHalf) return read_half(array, at, count, place, tile);
    float* memory = in_place(array);
    place = memory && count == kTile ? memory + at : tile;
    if (place != tile || !array.read) return;
    if (memory) return copy_tile(memory + at, count, tile);
    const auto* data = static_cast<const Bf16*>(array.weights ? array.weights->params : array.data) + at;
    copy_tile(data, count, tile);
  }

  void write_array(int64_t number, int64_t at, int64_t count, const float* place) const {
    const ProgramMemory& array = arrays_[number];
    if (from_[number] == From::kHalf) {
      if (count < kTile) __builtin_memcpy(bf16_memory(array) + at, place, count * sizeof(Bf16));
      return;
    }
    float* memory = in_place(array);
    if (has_bf16_weights(array)) {
      if (place == memory + at)
        return copy_tile(place, count, static_cast<Bf16*>(array.weights->params) + at);
      return with_weight_form<Weights>(*array.weights, [&](const auto& weights) {
        for_lanes(count,
                  [&](int64_t i, auto lanes) { weights.write(at + i, load(place + i, lanes), lanes); });
      });
    }
    if (place == memory + at) return;
    if (memory) return copy_tile(place, count, memory + at);
    copy_tile(place, count, static_cast<Bf16*>(array.data) + at);
  }

  const RowsShape shape_;
  const TileProgram& program_;
  const ProgramMemory* arrays_;
  float* constants_ = nullptr;         // a tile of each
  const From* from_ = nullptr;         // of each place
  const int64_t* advances_ = nullptr;  // of the place of each array from tile to tile, in 4 bytes
  bool is_in_place_ = true;            // all arrays that are not numbers
  const TileStep* steps_ = nullptr;
  int64_t first_constant_ = 0, num_places_ = 0;
};

}  // namespace

void run_program(RowsShape shape, const TileProgram& program, const ProgramMemory* arrays, Stream) {
  if (shape.rows > 0 && shape.dim > 0) Tiles(shape, program, arrays).run();
}

}  // namespace tycho::TYCHO_ISA
