// Checks of a program's tensors.
#include "trainer/kernels/expression/run_program.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

/// The raw form of a program's arrays.
struct RawArrays {
  std::vector<ProgramMemory> memory;
  std::vector<OptimizedWeights> weights;  // at most one
  int64_t numel = -1;
  Tensor any;
  bool flat = true;  // else matrices with a step between rows

  explicit RawArrays(const std::vector<ProgramArray>& arrays) {
    memory.reserve(arrays.size()), weights.reserve(1);
  }

  void take_numel(const ProgramArray& array, const Tensor& tensor) {
    if (numel < 0) numel = tensor.numel(), any = tensor;
    const bool rows = tensor.dim() == 2 && tensor.stride(1) == 1 && tensor.sizes() == any.sizes();
    TYCHO_CHECK(
        tensor.numel() == numel && (tensor.is_contiguous() || rows) && tensor.device() == any.device(),
        "[run_program] {}: expected {} contiguous elements on {}, got {} on {}", array.name, numel,
        any.device().str(), tensor.numel(), tensor.device().str());
    flat = flat && tensor.is_contiguous();
  }

  void add(const ProgramArray& array, const ProgramTensor& given) {
    ProgramMemory& raw = memory.emplace_back();
    raw.read = array.read, raw.written = array.written;
    if (!array.read && !array.written) return;
    TYCHO_CHECK(given.weights || given.tensor.defined(), "[run_program] {}: expected a tensor, got none",
                array.name);
    if (given.weights) {
      TYCHO_CHECK(weights.empty(), "[run_program] {}: expected weights once, got them twice", array.name);
      take_numel(array, given.weights->params);
      weights.push_back(optimized_weights("run_program", *given.weights));
      raw.weights = &weights.back(), raw.dtype = raw.weights->dtype;
      return;
    }
    raw.dtype = dtype_of("run_program", given.tensor), raw.data = given.tensor.mutable_data_ptr();
    if (!array.one) {
      take_numel(array, given.tensor);
      raw.row_step = given.tensor.dim() == 2 ? given.tensor.stride(0) : 0;
      return;
    }
    TYCHO_CHECK(given.tensor.numel() == 1 && raw.dtype == Dtype::kFp32 && !array.written,
                "[run_program] {}: expected one fp32 number that is read only, got {} elements", array.name,
                given.tensor.numel());
    raw.step = 0;
  }
};

}  // namespace

void run_program(const Program& program, const std::vector<double>& scalar_inputs,
                 const std::vector<ProgramTensor>& arrays) {
  const Range range("tycho::run_program");
  const std::vector<ProgramArray>& wanted = program.arrays();
  TYCHO_CHECK(arrays.size() == wanted.size(), "[run_program] expected {} arrays, got {}", wanted.size(),
              arrays.size());
  RawArrays raw(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) raw.add(wanted[i], arrays[i]);
  if (raw.numel <= 0) return;
  const std::vector<float> constants = program.constants(program.scalars(scalar_inputs));
  const RowsShape shape = raw.flat ? RowsShape{1, raw.numel} : RowsShape{raw.any.size(0), raw.any.size(1)};
  kernels(raw.any).run_program(shape, program.tiles(constants), raw.memory.data(), stream_of(raw.any));
}

}  // namespace tycho
