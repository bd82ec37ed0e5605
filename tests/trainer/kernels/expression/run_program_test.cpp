// Programs on every table against the reference interpreter: exact operations to the bit, functions of the C
// library within a few ulp.
#include "trainer/kernels/expression/run_program.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/nan_to_num.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "tests/trainer/expression/adamw_expression.h"
#include "tests/trainer/expression/neighbours.h"
#include "tests/trainer/expression/random_expression.h"
#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/random/philox.h"

namespace tycho {
namespace {

const std::vector<double> kOddNumbers = {
    0.0,       -0.0, 1,        -1,        0.3,       -2.5,   1e-40, -1e-44, 3e38,  -3e38, INFINITY,
    -INFINITY, NAN,  0.75,     88.6,      -88.6,     -103.9, 127,   1e-38,  0.625, 0.999, 1.001,
    -0.4,      0.6,  16777217, -16777217, 2.5000001, 1e10,   -7.5,  3,      -3,    4.2};

at::Device device_of(const KernelTable& table) {
  return std::string_view(table.name) == "cuda" ? at::kCUDA : at::kCPU;
}

bool is_exact(Op op) {
  return op != Op::kExp && op != Op::kLog && op != Op::kTanh && op != Op::kSigmoid && op != Op::kErf &&
         op != Op::kPow;
}

/// Runs a flat expression of elements on one table and its device; returns its outputs.
std::vector<Tensor> run_on(const KernelTable& table, const Program& program,
                           const std::map<std::string, Tensor>& given, const std::vector<double>& scalars,
                           int64_t numel) {
  const at::Device device = device_of(table);
  std::vector<Tensor> kept, out;
  std::vector<ProgramMemory> memory;
  for (const ProgramArray& array : program.arrays()) {
    const auto found = given.find(array.name);
    Tensor tensor = found == given.end() ? at::empty({numel}, device) : found->second.clone().to(device);
    memory.push_back({.data = tensor.mutable_data_ptr(),
                      .dtype = tensor.scalar_type() == at::kFloat ? Dtype::kFp32 : Dtype::kBf16,
                      .read = array.read,
                      .written = array.written});
    kept.push_back(tensor);
    if (array.written) out.push_back(tensor);
  }
  const std::vector<float> constants = program.constants(program.scalars(scalars));
  table.run_program({1, numel}, program.tiles(constants), memory.data(), nullptr);
  for (Tensor& tensor : out) tensor = tensor.cpu();
  return out;
}

int64_t ulps_between(float a, float b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (std::isnan(a) != std::isnan(b)) return INT32_MAX;
  const auto order = [](float x) {
    const auto bits = std::bit_cast<int32_t>(x);
    return bits < 0 ? int64_t{INT32_MIN} - bits : int64_t{bits};
  };
  return std::abs(order(a) - order(b));
}

/// Returns an expression with an output for each operation on x, y, z; comparisons and logic choose among
/// them.
Expression operations_of(const std::vector<Op>& ops) {
  Expression e;
  for (const char* name : {"x", "y", "z"}) {
    e.inputs.push_back({.name = name});
    e.nodes.push_back({.op = Op::kInput, .input = static_cast<int32_t>(e.inputs.size()) - 1});
  }
  e.nodes.push_back({.op = Op::kLt, .arguments = {0, 1, -1}});
  e.nodes.push_back({.op = Op::kGe, .arguments = {1, 2, -1}});
  for (const Op op : ops) {
    const OpKind kind = operation(op).kind;
    std::array<int32_t, 3> arguments = {0, 1, 2};
    if (kind == OpKind::kLogic) arguments = {3, 4, -1};
    if (kind == OpKind::kChoice) arguments = {3, 1, 2};
    for (size_t i = static_cast<size_t>(operation(op).arguments); i < 3; ++i) arguments[i] = -1;
    e.nodes.push_back({.op = op, .arguments = arguments});
    auto last = static_cast<int32_t>(e.nodes.size()) - 1;
    if (kind == OpKind::kLogic || kind == OpKind::kComparison)
      e.nodes.push_back({.op = Op::kWhere, .arguments = {last++, 0, 2}});
    e.outputs.push_back({operation(op).name, last});
  }
  return e;
}

Tensor tensor_of(const std::vector<double>& numbers) {
  Tensor out = at::empty({static_cast<int64_t>(numbers.size())});
  for (size_t i = 0; i < numbers.size(); ++i)
    out.mutable_data_ptr<float>()[i] = static_cast<float>(numbers[i]);
  return out;
}

class RunProgramTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    table_ = find_table(GetParam());
    if (!table_) GTEST_SKIP() << "this machine cannot run the kernels of " << GetParam();
  }
  std::vector<Tensor> run(const Program& program, const std::map<std::string, Tensor>& given,
                          const std::vector<double>& scalars, int64_t numel) const {
    return run_on(*table_, program, given, scalars, numel);
  }
  /// The emulated GPU calls a compiler for each program.
  uint64_t num_seeds() const { return GetParam() == "emulated" ? 3 : 60; }

  const KernelTable* table_ = nullptr;
};

/// x, y and z with all pairs of odd numbers of x and y.
struct OddNumbers {
  std::vector<double> x, y, z;

  OddNumbers() {
    for (size_t i = 0; i < kOddNumbers.size(); ++i)
      for (size_t k = 0; k < kOddNumbers.size(); ++k) {
        x.push_back(kOddNumbers[i]), y.push_back(kOddNumbers[k]);
        z.push_back(kOddNumbers[(i * 7 + k * 3) % kOddNumbers.size()]);
      }
  }
  static NodeValues rounded(std::vector<double> values) {
    for (double& value : values) value = static_cast<float>(value);
    return row_of(values);
  }
  std::map<std::string, Tensor> tensors() const {
    return {{"x", tensor_of(x)}, {"y", tensor_of(y)}, {"z", tensor_of(z)}};
  }
};

TEST_P(RunProgramTest, EveryOperationIsThatOfTheReference) {
  const OddNumbers odd;
  const auto& [x, y, z] = odd;
  const auto numel = static_cast<int64_t>(x.size());
  const std::vector<Op>& ops = random_operations(true);
  const Expression e = operations_of(ops);
  const auto expected = evaluate(e, {odd.rounded(x), odd.rounded(y), odd.rounded(z)}, Arithmetic::kFp32);
  const std::map<std::string, Tensor> given = odd.tensors();
  const std::vector<Tensor> found = run(Program(e), given, {}, numel);
  const std::vector<Tensor> on_cpu = run_on(cpu_kernels(), Program(e), given, {}, numel);
  for (size_t o = 0; o < ops.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i) {
      const float want = static_cast<float>(expected[o].numbers[i]),
                  got = found[o].const_data_ptr<float>()[i];
      EXPECT_LE(ulps_between(want, got), is_exact(ops[o]) ? 0 : 4)
          << operation(ops[o]).name << "(" << x[i] << ", " << y[i] << ", " << z[i] << "): " << want << " "
          << got;
      // A GPU has the CPU's formulas, but its own library's powf.
      EXPECT_LE(ulps_between(on_cpu[o].const_data_ptr<float>()[i], got),
                ops[o] == Op::kPow && GetParam() == "cuda" ? 4 : 0)
          << operation(ops[o]).name << "(" << x[i] << ", " << y[i] << ", " << z[i] << ")";
    }
}

TEST_P(RunProgramTest, NeighboursInOneStepAreRoundedOneByOne) {
  const OddNumbers odd;
  const auto numel = static_cast<int64_t>(odd.x.size());
  const Expression e = neighbours();
  const auto expected = evaluate(
      e, {odd.rounded(odd.x), odd.rounded(odd.y), odd.rounded(odd.z), scalar_of(0.37)}, Arithmetic::kFp32);
  const std::vector<Tensor> found = run(Program(e), odd.tensors(), {0.37}, numel);
  ASSERT_EQ(found.size(), e.outputs.size());
  for (size_t o = 0; o < found.size(); ++o)
    for (int64_t i = 0; i < numel; ++i)
      ASSERT_EQ(ulps_between(static_cast<float>(expected[o].numbers[static_cast<size_t>(i)]),
                             found[o].const_data_ptr<float>()[i]),
                0)
          << "output " << o << " element " << i;
}

TEST_P(RunProgramTest, FunctionsAreWithinAFewUlp) {
  const std::vector<Op> ops = {Op::kExp, Op::kLog, Op::kTanh, Op::kSigmoid, Op::kErf};
  const Program program(operations_of(ops));
  for (size_t o = 0; o < ops.size(); ++o) {
    std::vector<double> x;
    for (int i = 0; i < 20000; ++i) {
      const double u = philox(5, static_cast<uint64_t>(i))[0] * 0x1p-32;
      x.push_back(ops[o] == Op::kLog ? std::exp2(u * 250 - 125) : i % 2 ? (u - 0.5) * 12 : (u - 0.5) * 174);
    }
    const Tensor in = tensor_of(x);
    const Tensor found = run(program, {{"x", in}, {"y", in}, {"z", in}}, {}, 20000)[o];
    int64_t worst = 0;
    for (int64_t i = 0; i < 20000; ++i) {
      NodeValues value = row_of({in.const_data_ptr<float>()[i]});
      const double exact =
          evaluate(operations_of({ops[o]}), {value, value, value}, Arithmetic::kDouble)[0].numbers[0];
      worst = std::max(worst, ulps_between(static_cast<float>(exact), found.const_data_ptr<float>()[i]));
    }
    EXPECT_LE(worst, 6) << operation(ops[o]).name;
  }
}

TEST_P(RunProgramTest, ErfHasItsBitsBesideTheExponentialThatItIsComputedWith) {
  const char* const kHead = "{'inputs':[{'name':'x'}],'nodes':[['input',0],['erf',0]";
  const Program alone(expression_of(std::string(kHead) + "],'outputs':[{'name':'y','node':1}]}"));
  const Program both(expression_of(
      std::string(kHead) +
      ",['mul',0,0],['neg',2],['exp',3]],'outputs':[{'name':'y','node':1},{'name':'z','node':4}]}"));
  Tensor x = at::arange(-3000, 3000, at::kFloat) * 0.003;
  x[0] = std::numeric_limits<float>::infinity(), x[1] = std::numeric_limits<float>::quiet_NaN(),
  x[2] = 1e-40f;
  x[3] = -3e38f;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor in = x.to(dtype), one = run(alone, {{"x", in}}, {}, 6000)[0];
    const std::vector<Tensor> two = run(both, {{"x", in}}, {}, 6000);
    EXPECT_TRUE(at::equal(at::nan_to_num(one), at::nan_to_num(two[0]))) << dtype;
    EXPECT_EQ(one[0].item<float>(), 1);
    EXPECT_TRUE(std::isnan(one[1].item<float>()));
    EXPECT_LE(
        (two[1] - at::exp(-(in.to(at::kFloat) * in.to(at::kFloat)))).abs().nan_to_num().max().item<float>(),
        3e-7);
  }
}

TEST_P(RunProgramTest, RandomExpressionsOfExactOperationsHaveTheBitsOfTheReference) {
  for (uint64_t seed = 0; seed < num_seeds(); ++seed) {
    Expression e = random_expression(seed, 24, Op::kMul, {});
    for (Node& node : e.nodes)
      if (!is_exact(node.op)) node.op = node.op == Op::kPow ? Op::kMin : Op::kNeg;
    const int64_t numel = 1 + static_cast<int64_t>(seed * 37 % 1500);
    std::vector<double> x, y;
    for (int64_t i = 0; i < numel; ++i) {
      const auto words = philox(seed, static_cast<uint64_t>(i));
      x.push_back(static_cast<float>(words[0] * 0x1p-30 - 2)),
          y.push_back(static_cast<float>(words[1] * 0x1p-30 - 2));
    }
    const auto expected = evaluate(e, {row_of(x), row_of(y), scalar_of(0.37)}, Arithmetic::kFp32);
    const Tensor found = run(Program(e), {{"x", tensor_of(x)}, {"y", tensor_of(y)}}, {0.37}, numel)[0];
    for (int64_t i = 0; i < numel; ++i)
      ASSERT_EQ(ulps_between(static_cast<float>(expected[0].numbers[static_cast<size_t>(i)]),
                             found.const_data_ptr<float>()[i]),
                0)
          << "seed " << seed << " element " << i;
  }
}

TEST_P(RunProgramTest, ReadsAnArrayBeforeItIsOverwritten) {
  // x and y change places, and z needs what both were.
  Expression e = expression_of(
      "{'inputs':[{'name':'x'},{'name':'y'}],'nodes':[['input',0],['input',1],['mul',0,1],['add',2,0]],"
      "'outputs':[{'name':'x','node':1},{'name':'y','node':0},{'name':'z','node':3}]}");
  const Tensor x = at::arange(1000, at::kFloat), y = x + 5;
  const auto out = run(Program(e), {{"x", x}, {"y", y}}, {}, 1000);
  EXPECT_TRUE(at::equal(out[0], y));
  EXPECT_TRUE(at::equal(out[1], x));
  EXPECT_TRUE(at::equal(out[2], x * y + x));
}

TEST_P(RunProgramTest, WritesOutputsThatAreNumbersOrInputs) {
  const Program program(expression_of(
      "{'inputs':[{'name':'x'},{'name':'k','scalar':true}],'nodes':[['input',0],['number',-1],['broadcast',1,"
      "0],"
      "['input',1],['mul',3,3],['broadcast',4,0]],'outputs':[{'name':'a','node':2},{'name':'b','node':0},"
      "{'name':'c','node':5},{'name':'s','node':4},{'name':'d','node':5}]}"));
  const auto out = run(program, {{"x", at::arange(700, at::kFloat)}}, {3}, 700);
  ASSERT_EQ(out.size(), 4u);
  EXPECT_TRUE(at::equal(out[0], at::full({700}, -1.0f)));
  EXPECT_TRUE(at::equal(out[1], at::arange(700, at::kFloat)));
  EXPECT_TRUE(at::equal(out[2], at::full({700}, 9.0f)));
  EXPECT_TRUE(at::equal(out[3], out[2]));
  EXPECT_EQ(program.scalar_output("s", program.scalars({3})), 9.0);
  EXPECT_EQ(program.scalar_output("c", program.scalars({3})), std::nullopt);
}

TEST_P(RunProgramTest, PowersByOneNumberAreTorchs) {
  const Tensor x = tensor_of(kOddNumbers);
  for (const double exponent : {0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7, 4.0}) {
    const Program program(expression_of(
        "{'inputs':[{'name':'x'},{'name':'k','scalar':true}],'nodes':[['input',0],['input',1],['pow',0,1]],"
        "'outputs':[{'name':'y','node':2}]}"));
    const Tensor found = run(program, {{"x", x}}, {exponent}, x.numel())[0];
    const Tensor expected = at::pow(x, exponent);
    for (int64_t i = 0; i < x.numel(); ++i)
      EXPECT_LE(ulps_between(found.const_data_ptr<float>()[i], expected.const_data_ptr<float>()[i]), 2)
          << kOddNumbers[static_cast<size_t>(i)] << " ^ " << exponent;
  }
}

TEST_P(RunProgramTest, RoundsBf16WhenItIsWritten) {
  const Program program(
      expression_of("{'inputs':[{'name':'x'}],'nodes':[['input',0],['number',3],['div',0,1],['mul',2,2]],"
                    "'outputs':[{'name':'x','node':2},{'name':'y','node':3}]}"));
  const Tensor x = at::arange(2000, at::kFloat).to(at::kBFloat16);
  const auto out = run(program, {{"x", x}}, {}, 2000);
  const Tensor third = x.to(at::kFloat) / 3;
  EXPECT_TRUE(at::equal(out[0], third.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(out[1], third * third)) << "of what was not rounded yet";
}

TEST_P(RunProgramTest, RowsMayBePartsOfLongerRowsOrShareANumber) {
  constexpr int64_t kRows = 5;
  const Program program(expression_of(
      "{'inputs':[{'name':'gate'},{'name':'up'},{'name':'bias'},{'name':'scale'}],'nodes':[['input',0],"
      "['input',1],['input',2],['input',3],['add',0,2],['mul',4,1],['mul',5,3]],"
      "'outputs':[{'name':'y','node':6}]}"));
  for (const int64_t dim : {300, 301}) {
    const Tensor gate_up = at::randn({kRows, 2 * dim}).to(device_of(*table_), at::kBFloat16),
                 bias = at::randn({dim}).to(device_of(*table_)),
                 scale = at::randn({kRows}).to(device_of(*table_));
    Tensor y = at::empty({kRows, dim}, bias.options());
    auto* halves = static_cast<at::BFloat16*>(gate_up.mutable_data_ptr());
    const ProgramMemory arrays[] = {
        {.data = halves, .dtype = Dtype::kBf16, .row_step = 2 * dim, .read = true},
        {.data = halves + dim, .dtype = Dtype::kBf16, .row_step = 2 * dim, .read = true},
        {.data = bias.mutable_data_ptr(), .read = true},
        {.data = scale.mutable_data_ptr(), .row_step = 1, .step = 0, .read = true},
        {.data = y.mutable_data_ptr(), .row_step = dim, .written = true}};
    table_->run_program({kRows, dim}, program.tiles({}), arrays, nullptr);
    const Tensor wide = gate_up.to(at::kFloat);
    EXPECT_TRUE(
        at::equal(y, (wide.narrow(1, 0, dim) + bias) * wide.narrow(1, dim, dim) * scale.unsqueeze(1)));
  }
}

TEST_P(RunProgramTest, AdamWHasTheBitsOfTheBuiltInForEveryFormOfWeights) {
  const Program program(adamw_expression());
  const std::vector<float> constants =
      program.constants(program.scalars({3e-3, 0.9, 0.95, 1e-8, 3e-4, 0.271, 0.142625}));
  const AdamWScalars scalars = {3e-3, 0.9, 0.95, 1e-8, 3e-4, 0.271, 0.142625};
  for (const int64_t numel : {40013, 4096})
    for (const auto& [type, master, stochastic] : {std::tuple{at::kFloat, false, false},
                                                   {at::kBFloat16, true, false},
                                                   {at::kBFloat16, false, false},
                                                   {at::kBFloat16, false, true}}) {
      const auto drawn = [&, n = numel](uint64_t seed, double scale) {
        auto generator = at::detail::createCPUGenerator(seed);
        return at::randn({n}, generator, at::TensorOptions()).mul_(scale).to(device_of(*table_));
      };
      WeightTensors one{.params = drawn(1, 1.0).to(type), .stochastic = stochastic, .key = 7, .step = 3};
      // Rows of 30 elements of a parameter's rows of 100, from the 7th column on.
      if (stochastic) one.place = {.first = 5, .row = 30, .whole_row = 100, .there = {7}};
      if (master) one.master = drawn(1, 1.0);
      WeightTensors other = one;
      other.params = one.params.clone(), other.master = master ? one.master.clone() : Tensor();
      Tensor g = drawn(2, 0.1), scale = at::full({1}, 0.37f, g.options()), m = drawn(3, 0.1),
             v = drawn(4, 0.1).square();
      Tensor own_m = m.clone(), own_v = v.clone();
      table_->adamw_step(numel, scalars, scale.const_data_ptr<float>(), optimized_weights("test", one),
                         g.const_data_ptr<float>(), own_m.mutable_data_ptr<float>(),
                         own_v.mutable_data_ptr<float>(), nullptr);
      const OptimizedWeights raw = optimized_weights("test", other);
      const ProgramMemory arrays[] = {{.dtype = raw.dtype, .read = true, .written = true, .weights = &raw},
                                      {.data = g.mutable_data_ptr(), .read = true},
                                      {.data = m.mutable_data_ptr(), .read = true, .written = true},
                                      {.data = v.mutable_data_ptr(), .read = true, .written = true},
                                      {.data = scale.mutable_data_ptr(), .step = 0, .read = true}};
      table_->run_program({1, numel}, program.tiles(constants), arrays, nullptr);
      EXPECT_TRUE(at::equal(one.params, other.params)) << type << master << stochastic;
      if (master) {
        EXPECT_TRUE(at::equal(one.master, other.master));
      }
      EXPECT_TRUE(at::equal(m, own_m));
      EXPECT_TRUE(at::equal(v, own_v));
    }
}

INSTANTIATE_TEST_SUITE_P(Tables, RunProgramTest, testing::ValuesIn(kWholeTables),
                         [](const auto& info) { return info.param; });

TEST(RunProgramOp, NamesTheArrayThatDoesNotFit) {
  const Program program(expression_of(
      "{'inputs':[{'name':'x'},{'name':'y'},{'name':'scale','shape':[1,1]}],'nodes':[['input',0],['input',1],"
      "['input',2],['mul',0,1],['mul',3,2]],'outputs':[{'name':'z','node':4}]}"));
  Tensor x = at::ones({8}), y = at::full({8}, 3.0f), z = at::zeros({8});
  const Tensor scale = at::full({1}, 0.5f);
  run_program(program, {}, {{x}, {y}, {scale}, {z}});
  EXPECT_TRUE(at::equal(z, at::full({8}, 1.5f)));
  EXPECT_EQ(error_of([&] {
              run_program(program, {}, {{x}, {at::ones({7})}, {scale}, {z}});
            }),
            "[run_program] y: expected 8 contiguous elements on cpu, got 7 on cpu");
  EXPECT_EQ(error_of([&] {
              run_program(program, {}, {{x}, {y}, {Tensor()}, {z}});
            }),
            "[run_program] scale: expected a tensor, got none");
  EXPECT_EQ(error_of([&] {
              run_program(program, {}, {{x}, {y}, {at::ones({2})}, {z}});
            }),
            "[run_program] scale: expected one fp32 number that is read only, got 2 elements");
  EXPECT_EQ(error_of([&] {
              run_program(program, {}, {{x}, {y}});
            }),
            "[run_program] expected 4 arrays, got 2");
  EXPECT_EQ(error_of([&] {
              run_program(program, {1.0}, {{x}, {y}, {scale}, {z}});
            }),
            "[program] expected 0 scalar inputs, got 1");
}

}  // namespace
}  // namespace tycho
