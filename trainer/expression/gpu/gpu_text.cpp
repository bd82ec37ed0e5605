// Every instruction becomes a line; NVRTC finds what they share.
#include "trainer/expression/gpu/gpu_text.h"

#include <fmt/format.h>

namespace tycho {
namespace {

const char* sign_of_operation(Op op) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSub: return "-";
    case Op::kMul: return "*";
    case Op::kDiv: return "/";
    default: return nullptr;
  }
}

const char* sign_of_comparison(Op op) {
  switch (op) {
    case Op::kLt: return "<";
    case Op::kLe: return "<=";
    case Op::kGt: return ">";
    case Op::kGe: return ">=";
    case Op::kEq: return "==";
    case Op::kNe: return "!=";
    default: return nullptr;
  }
}

/// Returns the pattern of an operation of operands {0}, {1}, {2}.
const char* pattern_of(Op op) {
  switch (op) {
    case Op::kNeg: return "-{0}";
    case Op::kAbs: return "magnitude({0})";
    case Op::kSign: return "sign_of({0})";
    case Op::kFloor: return "floorf({0})";
    case Op::kSqrt: return "sqrtf({0})";
    case Op::kRsqrt: return "1.0f / sqrtf({0})";
    case Op::kExp: return "wide_exp({0})";
    case Op::kLog: return "logarithm({0})";
    case Op::kTanh: return "hyperbolic_tangent({0})";
    case Op::kSigmoid: return "logistic({0})";
    case Op::kErf: return "error_function({0})";
    case Op::kMin: return "smaller_of({0}, {1})";
    case Op::kMax: return "larger_of({0}, {1})";
    case Op::kAnd: return "both({0}, {1})";
    case Op::kOr: return "either({0}, {1})";
    case Op::kNot: return "none({0})";
    case Op::kFma: return "__fmaf_rn({0}, {1}, {2})";
    case Op::kClamp: return "smaller_of(larger_of({0}, {1}), {2})";
    case Op::kWhere:
    case Op::kEvery: return "choose({0}, {1}, {2})";
    default: return "{0}";  // kBroadcast
  }
}

class GpuTextWriter {
 public:
  GpuTextWriter(const TileProgram& program, const std::vector<GpuArray>& arrays)
      : program_(program), arrays_(arrays), first_constant_(program.num_arrays + program.num_temporaries) {}

  std::string run() {
    for (const GpuSource& source : gpu_sources()) out_ += without_pragma(source.text);
    out_ += "\nnamespace tycho::gpu_program {\n\nstruct Program {\n  GpuRun run;\n";
    add("  GpuArrayMemory arrays[{}];\n", arrays_.size());
    if (program_.num_constants > 0) add("  float constants[{}];\n", program_.num_constants);
    out_ += "\n  template <int width>\n  __device__ void elements(long long row, long long at) const {\n";
    for (size_t i = 0; i < arrays_.size(); ++i)
      if (arrays_[i].read || arrays_[i].written) add_read(i);
    for (int32_t i = 0; i < program_.num_constants; ++i) add("    const float c{0} = constants[{0}];\n", i);
    out_ += "#pragma unroll\n    for (int k = 0; k < width; ++k) {\n";
    out_ += "      float kept;\n";
    for (int32_t i = 0; i < program_.num_temporaries; ++i) add("      float t{};\n", i);
    for (int32_t i = 0; i < program_.num_instructions; ++i) {
      const TileInstruction& x = program_.instructions[i];
      add("      kept = {};\n", value_of(x));
      if (x.to != kRegisters) add("      {} = kept;\n", place(x.to));
    }
    out_ += "    }\n";
    for (size_t i = 0; i < arrays_.size(); ++i)
      if (arrays_[i].written) add_write(i);
    out_ += "  }\n};\n\n}  // namespace tycho::gpu_program\n\n";
    add("extern \"C\" __global__ void {}(const tycho::gpu_program::Program program) {{\n", kGpuKernel);
    out_ +=
        "  if (program.run.packs)\n    tycho::gpu_program::over_elements<4>(program);\n  else\n"
        "    tycho::gpu_program::over_elements<1>(program);\n}\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
  }

  static std::string without_pragma(std::string_view text) {
    constexpr std::string_view kPragma = "#pragma once\n";
    std::string out(text);
    if (const size_t at = out.find(kPragma); at != std::string::npos) out.erase(at, kPragma.size());
    return out;
  }

  std::string place(int32_t i) const {
    if (i == kRegisters) return "kept";
    if (i < program_.num_arrays) return fmt::format("a{}[k]", i);
    if (i < first_constant_) return fmt::format("t{}", i - program_.num_arrays);
    return fmt::format("c{}", i - first_constant_);
  }

  std::string operation_text(Op op, int32_t a, int32_t b, int32_t c) const {
    if (const char* sign = sign_of_operation(op)) return fmt::format("{} {} {}", place(a), sign, place(b));
    if (const char* sign = sign_of_comparison(op))
      return fmt::format("mask_of({} {} {})", place(a), sign, place(b));
    if (op == Op::kPow)
      return fmt::format("{}({}, {})", b >= first_constant_ && b != kRegisters ? "power_by" : "powf",
                         place(a), place(b));
    return fmt::format(fmt::runtime(pattern_of(op)), place(a), place(b), place(c));
  }

  std::string value_of(const TileInstruction& x) const {
    const std::string inner = operation_text(x.op, x.a, x.b, x.c);
    if (x.fusion == Fusion::kNone) return inner;
    const char* const then = sign_of_operation(x.then);
    if (x.fusion == Fusion::kLeft) return fmt::format("({}) {} {}", inner, then, place(x.c));
    return fmt::format("{} {} ({})", place(x.c), then, inner);
  }

  void add_read(size_t i) {
    const GpuArray& array = arrays_[i];
    add("    float a{}[width];\n", i);
    if (!array.read) return;
    const bool bf16 = array.form == GpuArray::Form::kBf16 || array.form == GpuArray::Form::kStochasticBf16;
    const char* const type = bf16 ? "Bf16" : "float";
    if (array.one)
      add("    read_number<{1}>(arrays[{0}], row, a{0});\n", i, type);
    else if (array.form == GpuArray::Form::kMixed)
      add("    read<float>(GpuArrayMemory{{run.master, 0}}, row, at, a{});\n", i);
    else
      add("    read<{1}>(arrays[{0}], row, at, a{0});\n", i, type);
  }

  void add_write(size_t i) {
    switch (arrays_[i].form) {
      case GpuArray::Form::kMixed:
        add("    write<float>(a{}, GpuArrayMemory{{run.master, 0}}, row, at);\n", i);
        [[fallthrough]];
      case GpuArray::Form::kBf16: return add("    write<Bf16>(a{0}, arrays[{0}], row, at);\n", i);
      case GpuArray::Form::kFp32: return add("    write<float>(a{0}, arrays[{0}], row, at);\n", i);
      case GpuArray::Form::kStochasticBf16:
        return add("    write_stochastic(a{0}, arrays[{0}], run, at);\n", i);
    }
  }

  const TileProgram& program_;
  const std::vector<GpuArray>& arrays_;
  const int32_t first_constant_;
  std::string out_;
};

}  // namespace

std::string gpu_text(const TileProgram& program, const std::vector<GpuArray>& arrays) {
  return GpuTextWriter(program, arrays).run();
}

}  // namespace tycho
