// Random expressions whose results are finite.
#include "tests/trainer/expression/random_expression.h"

#include <algorithm>

#include "trainer/base/random/philox.h"
#include "trainer/expression/expression_check.h"

namespace tycho {
namespace {

class Growth {
 public:
  Growth(uint64_t seed, const RandomShapes& shapes) : seed_(seed), shapes_(shapes) {
    const auto input = [&](const char* name, bool scalar, MatrixShape shape) {
      out_.inputs.push_back({name, scalar, shapes_.flat ? MatrixShape{} : shape});
      push({.op = Op::kInput, .input = static_cast<int32_t>(out_.inputs.size()) - 1});
    };
    input("x", false, shapes.matrix);
    input("y", false, draw(2) ? shapes.matrix : MatrixShape{1, shapes.matrix.columns});
    out_.inputs.push_back({"k", true, {}});
    push({.op = Op::kInput, .input = 2});
    push({.op = Op::kNumber, .number = 0.75});
  }

  Expression run(int size, Op must) {
    const std::vector<Op>& all = random_operations(shapes_.flat);
    for (int i = 0; i < size; ++i) grow(i == size / 2 ? must : all[draw(all.size())]);
    // All that grew is summed, so that nothing is dead.
    int32_t total = add(Op::kMul, 0, 1);
    for (const int32_t node : grown_) total = add(Op::kAdd, total, add(Op::kTanh, node));
    out_.outputs.push_back({"z", total});
    return out_;
  }

 private:
  size_t draw(size_t end) { return philox(seed_, count_++)[0] % end; }

  int32_t push(const Node& node) {
    out_.nodes.push_back(node);
    types_.push_back(type_of_node(out_, out_.nodes.size() - 1, types_));
    return static_cast<int32_t>(out_.nodes.size()) - 1;
  }
  int32_t add(Op op, int32_t a = -1, int32_t b = -1, int32_t c = -1) {
    return push({.op = op, .arguments = {a, b, c}});
  }
  int32_t number(double value) { return push({.op = Op::kNumber, .number = value}); }

  int32_t any() {
    return grown_.empty() || draw(3) == 0 ? static_cast<int32_t>(draw(2)) : grown_[draw(grown_.size())];
  }
  int32_t any_or_scalar() { return draw(4) == 0 ? 2 + static_cast<int32_t>(draw(2)) : any(); }
  /// Returns a value of at least one half.
  int32_t positive() {
    const int32_t x = any();
    return add(Op::kAdd, add(Op::kMul, x, x), number(0.5));
  }
  int32_t bounded(int32_t x) { return add(Op::kTanh, x); }
  int32_t condition() { return add(Op::kGt, any(), any_or_scalar()); }

  void grow(Op op) {
    const OpKind kind = operation(op).kind;
    int32_t added = 0;
    if (kind == OpKind::kReduction) {
      const ReducedOver over[] = {ReducedOver::kRow, ReducedOver::kColumn, ReducedOver::kMatrix};
      added = push({.op = op, .arguments = {add(Op::kAdd, any(), 0), -1, -1}, .over = over[draw(3)]});
    } else if (kind == OpKind::kComparison) {
      added = add(Op::kWhere, add(op, any(), any_or_scalar()), any(), any_or_scalar());
    } else if (kind == OpKind::kLogic) {
      const int32_t first = condition();
      const int32_t both = op == Op::kNot ? add(op, first) : add(op, first, condition());
      added = add(Op::kWhere, both, any_or_scalar(), any());
    } else {
      added = arithmetic(op);
    }
    grown_.push_back(added);
  }

  int32_t arithmetic(Op op) {
    switch (op) {
      case Op::kDiv: return add(op, any_or_scalar(), positive());
      case Op::kPow:
        return add(op, positive(), draw(2) ? any_or_scalar() : number(static_cast<double>(draw(7)) - 3));
      case Op::kSqrt:
      case Op::kRsqrt:
      case Op::kLog: return add(op, positive());
      case Op::kExp: return add(op, bounded(any()));
      case Op::kWhere: return add(op, condition(), any(), any_or_scalar());
      case Op::kClamp: return add(op, any(), number(-0.4), number(0.6));
      case Op::kFma: return add(op, bounded(any()), any_or_scalar(), any());
      case Op::kMul: return add(op, bounded(any()), any_or_scalar());
      default: break;
    }
    return operation(op).arguments == 1 ? add(op, any()) : add(op, any(), any_or_scalar());
  }

  uint64_t seed_, count_ = 0;
  RandomShapes shapes_;
  Expression out_;
  std::vector<NodeType> types_;
  std::vector<int32_t> grown_;
};

}  // namespace

Expression expression_of(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return read_expression(parse_json(text, "test"));
}

NodeValues row_of(std::vector<double> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return {{1, count}, std::move(numbers)};
}

NodeValues scalar_of(double number) { return {{1, 1}, {number}}; }

const std::vector<Op>& random_operations(bool flat) {
  static const auto make = [](bool with_reductions) {
    std::vector<Op> list;
    for (int op = static_cast<int>(Op::kAdd); op <= static_cast<int>(Op::kWhere); ++op)
      list.push_back(static_cast<Op>(op));
    if (with_reductions)
      for (const Op op : {Op::kSum, Op::kMean, Op::kLargest, Op::kSmallest}) list.push_back(op);
    return list;
  };
  static const std::vector<Op> elements = make(false), all = make(true);
  return flat ? elements : all;
}

Expression random_expression(uint64_t seed, int size, Op must, const RandomShapes& shapes) {
  return Growth(seed, shapes).run(size, must);
}

}  // namespace tycho
