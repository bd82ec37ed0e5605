// The matrix product of every table that this machine can run, against double: each dtype and layout of the
// operands, tails in every dim, with and without something to add.
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <limits>

#include "tests/trainer/kernels/kernel_test.h"
#include "tests/trainer/kernels/matmul_oracle.h"

namespace tycho {
namespace {

using Shape = std::array<int64_t, 3>;  // rows, columns, depth

// Ends of tiles, of vectors, of pairs along the depth, and up to eight rows, as generation has them.
const std::vector<Shape> kTails = {{1, 1, 1},     {1, 40, 7},   {2, 33, 31},  {3, 64, 130},  {4, 17, 2},
                                   {5, 130, 300}, {6, 5, 64},   {7, 31, 33},  {8, 32, 16},   {9, 1, 1},
                                   {9, 31, 2},    {10, 33, 3},  {11, 16, 15}, {12, 32, 32},  {13, 17, 1},
                                   {16, 48, 31},  {23, 65, 17}, {24, 24, 34}, {25, 15, 63},  {31, 66, 65},
                                   {33, 129, 29}, {47, 9, 66},  {49, 31, 5},  {64, 96, 530}, {53, 32, 600}};
// Several chunks of tokens, panels of weights, steps of the depth; the last one several sums over tokens.
const std::vector<Shape> kBlocks = {{300, 40, 30},  {1100, 70, 20}, {20, 40, 1100}, {270, 27, 513},
                                    {9, 6200, 600}, {330, 70, 300}, {131, 401, 517}};
// Rows whose starts share sets of a cache.
const std::vector<Shape> kApart = {{30, 30, 512}, {13, 64, 1024}, {9, 40, 2048}, {150, 40, 512}};
// Several blocks in rows, columns and depth of products whose operands lie in no layer's way.
const std::vector<Shape> kLarge = {{1600, 30, 2100}, {30, 1600, 2100}, {2100, 1600, 30}};

struct Dtypes {
  at::ScalarType operands, result;
};
const std::array<Dtypes, 3> kDtypes = {
    {{at::kFloat, at::kFloat}, {at::kBFloat16, at::kFloat}, {at::kBFloat16, at::kBFloat16}}};

Dtype dtype_of(at::ScalarType type) { return type == at::kFloat ? Dtype::kFp32 : Dtype::kBf16; }

bool is_emulated(const KernelTable* table) { return std::string_view(table->name).ends_with("_emulated"); }

enum class Added { kNothing, kOther, kResult };

/// One product of a table, compared with the oracle. `laid` operands are those of the oracle, or transposed.
void expect_product(const KernelTable* table, const ProductOracle& oracle, const Shape& shape, Dtypes dtypes,
                    const MatmulOperand& left, const MatmulOperand& right, Added added) {
  const auto& [rows, columns, depth] = shape;
  const Tensor before = at::randn({rows, columns}).to(dtypes.result);
  Tensor out = added == Added::kResult ? before.clone() : at::full({rows, columns}, NAN, dtypes.result);
  const void* added_data = added == Added::kNothing ? nullptr
                           : added == Added::kOther ? before.const_data_ptr()
                                                    : out.const_data_ptr();
  table->matmul({rows, columns, depth}, left, right,
                {out.mutable_data_ptr(), dtype_of(dtypes.result), added_data}, nullptr);
  oracle.expect_near(out, added == Added::kNothing ? nullptr : &before);
}

void expect_products(const KernelTable* table, const Shape& shape, const std::vector<Added>& additions) {
  const auto& [rows, columns, depth] = shape;
  for (const Dtypes dtypes : kDtypes) {
    const Tensor left = at::randn({rows, depth}).to(dtypes.operands),
                 right = at::randn({columns, depth}).to(dtypes.operands);
    const ProductOracle oracle(left, right);
    for (const bool left_t : {false, true})
      for (const bool right_t : {false, true})
        for (const Added added : additions) {
          SCOPED_TRACE(testing::Message()
                       << table->name << " " << rows << "x" << columns << "x" << depth << " "
                       << c10::toString(dtypes.operands) << " to " << c10::toString(dtypes.result)
                       << (left_t ? ", left transposed" : "") << (right_t ? ", right transposed" : "")
                       << ", added " << static_cast<int>(added));
          const Tensor left_laid = left_t ? left.t().contiguous() : left,
                       right_laid = right_t ? right.t().contiguous() : right;
          const auto operand = [&](const Tensor& x, bool transposed, int64_t n) {
            return MatmulOperand{x.const_data_ptr(), dtype_of(dtypes.operands), transposed ? 1 : depth,
                                 transposed ? n : 1};
          };
          expect_product(table, oracle, shape, dtypes, operand(left_laid, left_t, rows),
                         operand(right_laid, right_t, columns), added);
        }
  }
}

TEST(MatmulKernel, HasOneDefinitionOnEveryTable) {
  at::manual_seed(1);
  for (const KernelTable* table : cpu_tables()) {
    for (const Shape& shape : kTails)
      expect_products(table, shape, {Added::kNothing, Added::kOther, Added::kResult});
    for (const auto* shapes : {&kBlocks, &kApart})
      for (const Shape& shape : *shapes) expect_products(table, shape, {Added::kNothing, Added::kResult});
    if (!is_emulated(table))
      for (const Shape& shape : kLarge) expect_products(table, shape, {Added::kOther});
  }
}

/// Memory that ends where a page begins that nobody may touch.
class AtTheEnd {
 public:
  explicit AtTheEnd(const Tensor& values) : bytes_(values.nbytes()) {
    constexpr size_t kPage = 4096;
    size_ = (bytes_ + kPage - 1) / kPage * kPage + kPage;
    memory_ =
        static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + size_ - kPage, kPage, PROT_NONE);
    data = memory_ + size_ - kPage - bytes_;
    std::memcpy(data, values.const_data_ptr(), bytes_);
  }
  ~AtTheEnd() { munmap(memory_, size_); }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;

  char* data;

 private:
  size_t bytes_, size_;
  char* memory_;
};

TEST(MatmulKernel, TouchesNothingBeyondItsOperands) {
  at::manual_seed(2);
  for (const KernelTable* table : cpu_tables())
    for (const Shape& shape : kTails)
      for (const Dtypes dtypes : kDtypes)
        for (const int transposed : {0, 1, 2, 3}) {
          const auto& [rows, columns, depth] = shape;
          const bool left_t = transposed & 1, right_t = transposed & 2;
          const Tensor left = at::randn({rows, depth}).to(dtypes.operands),
                       right = at::randn({columns, depth}).to(dtypes.operands),
                       added = at::randn({rows, columns}).to(dtypes.result);
          const AtTheEnd left_laid(left_t ? left.t().contiguous() : left),
              right_laid(right_t ? right.t().contiguous() : right), added_laid(added), out_laid(added);
          const Dtype dtype = dtype_of(dtypes.operands);
          table->matmul({rows, columns, depth},
                        {left_laid.data, dtype, left_t ? 1 : depth, left_t ? rows : 1},
                        {right_laid.data, dtype, right_t ? 1 : depth, right_t ? columns : 1},
                        {out_laid.data, dtype_of(dtypes.result), added_laid.data}, nullptr);
          Tensor out = at::empty({rows, columns}, dtypes.result);
          std::memcpy(out.mutable_data_ptr(), out_laid.data, out.nbytes());
          ProductOracle(left, right).expect_near(out, &added);
        }
}

/// A matrix in the middle of a larger one of NaN.
Tensor among_nans(const Tensor& x) {
  const Tensor all = at::full({x.size(0) + 2, x.size(1) + 5}, NAN, x.scalar_type());
  Tensor middle = all.narrow(0, 1, x.size(0)).narrow(1, 2, x.size(1));
  middle.copy_(x);
  return middle;
}

TEST(MatmulKernel, ReadsRowsThatLieApart) {
  at::manual_seed(3);
  for (const KernelTable* table : cpu_tables())
    for (const Shape& shape : kTails)
      for (const Dtypes dtypes : kDtypes) {
        const auto& [rows, columns, depth] = shape;
        const Tensor left = at::randn({rows, depth}).to(dtypes.operands),
                     right = at::randn({columns, depth}).to(dtypes.operands);
        const ProductOracle oracle(left, right);
        for (const bool left_t : {false, true})
          for (const bool right_t : {false, true}) {
            const Tensor left_laid = among_nans(left_t ? left.t() : left),
                         right_laid = among_nans(right_t ? right.t() : right);
            const auto operand = [&](const Tensor& x, bool transposed) {
              return MatmulOperand{x.const_data_ptr(), dtype_of(dtypes.operands),
                                   transposed ? 1 : x.stride(0), transposed ? x.stride(0) : 1};
            };
            SCOPED_TRACE(testing::Message() << table->name << " " << rows << "x" << columns << "x" << depth);
            expect_product(table, oracle, shape, dtypes, operand(left_laid, left_t),
                           operand(right_laid, right_t), Added::kResult);
          }
      }
}

// A text has the bits that it has alone, however many others are written along with it.
TEST(MatmulKernel, SumsARowInTheSameOrderAmongUpToEight) {
  at::manual_seed(4);
  constexpr int64_t kColumns = 101, kDepth = 333;
  for (const KernelTable* table : cpu_tables())
    for (const Dtypes dtypes : kDtypes) {
      const Dtype type = dtype_of(dtypes.operands);
      const Tensor left = at::randn({8, kDepth}).to(dtypes.operands),
                   right = at::randn({kColumns, kDepth}).to(dtypes.operands);
      const auto product = [&](int64_t first, int64_t rows) {
        Tensor out = at::empty({rows, kColumns}, dtypes.result);
        table->matmul({rows, kColumns, kDepth},
                      {left.narrow(0, first, rows).const_data_ptr(), type, kDepth, 1},
                      {right.const_data_ptr(), type, kDepth, 1},
                      {out.mutable_data_ptr(), dtype_of(dtypes.result), nullptr}, nullptr);
        return out;
      };
      for (int64_t rows = 2; rows <= 8; ++rows) {
        const Tensor together = product(0, rows);
        for (int64_t row = 0; row < rows; ++row)
          EXPECT_TRUE(at::equal(together.narrow(0, row, 1), product(row, 1))) << table->name << " " << rows;
      }
    }
}

TEST(MatmulKernel, GivesTheSameBitsWithAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const KernelTable* table : cpu_tables())
    for (const Dtypes dtypes : kDtypes)
      for (const bool transposed : {false, true}) {
        const int64_t side = 150, depth = 700;
        const Tensor left = at::randn({side * depth}).to(dtypes.operands),
                     right = at::randn({side * depth}).to(dtypes.operands);
        const auto operand = [&](const Tensor& x) {
          return MatmulOperand{x.const_data_ptr(), dtype_of(dtypes.operands), transposed ? 1 : depth,
                               transposed ? side : 1};
        };
        std::array<Tensor, 2> outs;
        for (const int i : {0, 1}) {
          at::set_num_threads(i + 1);
          outs[i] = at::empty({side, side}, dtypes.result);
          table->matmul({side, side, depth}, operand(left), operand(right),
                        {outs[i].mutable_data_ptr(), dtype_of(dtypes.result), nullptr}, nullptr);
        }
        EXPECT_TRUE(at::equal(outs[0], outs[1])) << table->name;
      }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace tycho
