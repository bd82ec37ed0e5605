// Writes expressions infix.
#include "trainer/expression/expression_text.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace tycho {
namespace {

constexpr size_t kLongText = 70;

// How tightly an operator binds.
enum Binding { kOr = 1, kAnd, kCompares, kAdds, kMultiplies, kNegates, kRaises, kAtom };

struct Infix {
  const char* sign;
  int binding;
};

std::optional<Infix> infix_of(Op op) {
  switch (op) {
    case Op::kAdd: return Infix{"+", kAdds};
    case Op::kSub: return Infix{"-", kAdds};
    case Op::kMul: return Infix{"*", kMultiplies};
    case Op::kDiv: return Infix{"/", kMultiplies};
    case Op::kPow: return Infix{"^", kRaises};
    case Op::kLt: return Infix{"<", kCompares};
    case Op::kLe: return Infix{"<=", kCompares};
    case Op::kGt: return Infix{">", kCompares};
    case Op::kGe: return Infix{">=", kCompares};
    case Op::kEq: return Infix{"==", kCompares};
    case Op::kNe: return Infix{"~=", kCompares};
    case Op::kAnd: return Infix{"and", kAnd};
    case Op::kOr: return Infix{"or", kOr};
    default: return std::nullopt;
  }
}

struct Written {
  std::string text;
  int binding = kAtom;
};

class Writer {
 public:
  explicit Writer(const Expression& expression) : expression_(expression), uses_(expression.nodes.size()) {
    for (const Node& node : expression.nodes)
      for (int i = 0; i < operation(node.op).arguments; ++i)
        ++uses_[static_cast<size_t>(node.arguments[static_cast<size_t>(i)])];
  }

  std::string run() {
    for (size_t i = 0; i < expression_.nodes.size(); ++i) {
      Written written = write(expression_.nodes[i]);
      const bool source = operation(expression_.nodes[i].op).kind == OpKind::kSource;
      if (!source && uses_[i] > 0 && (uses_[i] > 1 || written.text.size() > kLongText)) {
        const std::string name = "v" + std::to_string(++names_);
        out_ += name + " = " + written.text + "\n";
        written = {name};
      }
      written_.push_back(std::move(written));
    }
    for (const ExpressionOutput& output : expression_.outputs)
      out_ += output.name + " = " + written_[static_cast<size_t>(output.node)].text + "\n";
    return out_;
  }

 private:
  const Written& argument(const Node& node, size_t i) const {
    return written_[static_cast<size_t>(node.arguments[i])];
  }

  static std::string within(const Written& part, int least) {
    return part.binding < least ? "(" + part.text + ")" : part.text;
  }

  static Written number(double value) {
    if (std::isnan(value)) return {"nan"};
    std::string text = std::isinf(value) ? (value > 0 ? "inf" : "-inf") : fmt::format("{}", value);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return {text, std::signbit(value) ? kNegates : kAtom};
  }

  Written write(const Node& node) const {
    if (node.op == Op::kNumber) return number(node.number);
    if (node.op == Op::kInput) return {expression_.inputs[static_cast<size_t>(node.input)].name};
    if (const std::optional<Infix> infix = infix_of(node.op)) {
      // Operators group to the left; a power to neither side, so that nobody must know.
      const int left = infix->binding + (infix->binding == kRaises || infix->binding == kCompares);
      return {within(argument(node, 0), left) + " " + infix->sign + " " +
                  within(argument(node, 1), infix->binding + 1),
              infix->binding};
    }
    if (node.op == Op::kNeg) return {"-" + within(argument(node, 0), kRaises), kNegates};
    if (node.op == Op::kNot) return {"not " + within(argument(node, 0), kAtom), kNegates};
    std::string text = std::string(operation(node.op).name) + "(";
    for (int i = 0; i < operation(node.op).arguments; ++i)
      text += (i > 0 ? ", " : "") + argument(node, static_cast<size_t>(i)).text;
    if (node.over != ReducedOver::kNothing)
      text += std::string(", \"") + kReducedOverNames[static_cast<size_t>(node.over)] + "\"";
    return {text + ")"};
  }

  const Expression& expression_;
  std::vector<int> uses_;
  std::vector<Written> written_;
  std::string out_;
  int names_ = 0;
};

}  // namespace

std::string text_of(const Expression& expression) { return Writer(expression).run(); }

}  // namespace tycho
