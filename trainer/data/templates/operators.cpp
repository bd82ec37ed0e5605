// Integers have 64 bits; a result that needs more is an error.
#include "trainer/data/templates/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/data/templates/python_text.h"

namespace tycho::jinja {
namespace {

[[noreturn]] void wrong_operands(std::string_view op, const Value& a, const Value& b,
                                 const Rendering& rendering) {
  for (const Value* value : {&a, &b})
    if (value->is<Undefined>()) rendering.wrong("{} is undefined", value->as<Undefined>().what);
  rendering.wrong("{} is not defined between {} and {}", op, type_of(a), type_of(b));
}

Value integer_result(std::string_view op, int64_t a, int64_t b, Rendering& rendering) {
  int64_t result = 0;
  bool too_large = false;
  if (op == "+") {
    too_large = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    too_large = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    too_large = __builtin_mul_overflow(a, b, &result);
  } else {
    if (b == 0) rendering.wrong("division by zero");
    if (op == "/") return Value::Data(static_cast<double>(a) / static_cast<double>(b));
    too_large = b == -1 && a == std::numeric_limits<int64_t>::min();
    if (!too_large) {
      // Python rounds towards minus infinity, and a remainder has the sign of the divisor.
      const int64_t rest = a % b, lower = rest != 0 && (rest < 0) != (b < 0);
      result = op == "%" ? rest + lower * b : a / b - lower;
    }
  }
  if (too_large) rendering.wrong("the result of {} has more than 64 bits", op);
  return Value::Data(result);
}

Value real_result(std::string_view op, double a, double b, Rendering& rendering) {
  if (op == "+") return Value::Data(a + b);
  if (op == "-") return Value::Data(a - b);
  if (op == "*") return Value::Data(a * b);
  if (b == 0) rendering.wrong("division by zero");
  if (op == "/") return Value::Data(a / b);
  // Follows CPython's float_divmod.
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) {
    rest += b;
    quotient -= 1;
  } else if (rest == 0) {
    rest = std::copysign(0.0, b);
  }
  if (op == "%") return Value::Data(rest);
  if (quotient == 0) return Value::Data(std::copysign(0.0, a / b));
  const double whole = std::floor(quotient);
  return Value::Data(quotient - whole > 0.5 ? whole + 1 : whole);
}

Value joined(const Value& a, const Value& b, Rendering& rendering) {
  if (a.is_text()) return make_text(a.text() + b.text(), rendering);
  std::vector<Value> items = a.list().items;
  items.insert(items.end(), b.list().items.begin(), b.list().items.end());
  return make_list(std::move(items), a.list().kind, rendering);
}

bool is_list(const Value& value) {
  return value.is<ListPtr>() &&
         (value.list().kind == ListKind::kList || value.list().kind == ListKind::kTuple);
}

Value repeated(const Value& value, int64_t times, Rendering& rendering) {
  times = std::max<int64_t>(times, 0);
  const int64_t size = value.is_text() ? std::ssize(value.text()) : std::ssize(value.list().items);
  if (size > 0 && times > kMaxValueBytes / size)
    rendering.wrong("a value is larger than {} bytes", kMaxValueBytes);
  rendering.charge(times * size);
  std::string text;
  std::vector<Value> items;
  for (int64_t i = 0; i < times && size > 0; ++i) {
    if (value.is_text()) {
      text += value.text();
    } else {
      items.insert(items.end(), value.list().items.begin(), value.list().items.end());
    }
  }
  if (value.is_text()) return make_text(std::move(text), rendering);
  return make_list(std::move(items), value.list().kind, rendering);
}

/// Returns the positions that Python's slice takes of `size` items.
std::vector<int64_t> positions(int64_t size, const Value& first, const Value& end, const Value& step,
                               Rendering& rendering) {
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (value.is<None>()) return otherwise;
    if (!value.is_integer()) rendering.wrong("expected whole numbers in [:], got {}", type_of(value));
    return value.integer();
  };
  const int64_t by = bound(step, 1);
  if (by == 0) rendering.wrong("the step of [::] is 0");
  const int64_t lowest = by > 0 ? 0 : -1, highest = by > 0 ? size : size - 1;
  const auto clamped = [&](const Value& value, int64_t otherwise) {
    if (value.is<None>()) return otherwise;
    const int64_t at = bound(value, 0);
    return std::clamp(at < 0 ? at + size : at, lowest, highest);
  };
  std::vector<int64_t> taken;
  const int64_t stop = clamped(end, by > 0 ? size : -1);
  for (int64_t at = clamped(first, by > 0 ? 0 : size - 1); by > 0 ? at < stop : at > stop;) {
    taken.push_back(at);
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  return taken;
}

}  // namespace

Value arithmetic(std::string_view op, const Value& a, const Value& b, Rendering& rendering) {
  if (a.is_integer() && b.is_integer()) return integer_result(op, a.integer(), b.integer(), rendering);
  if (a.is_number() && b.is_number()) return real_result(op, a.number(), b.number(), rendering);
  if (op == "+" &&
      ((a.is_text() && b.is_text()) || (is_list(a) && is_list(b) && a.list().kind == b.list().kind)))
    return joined(a, b, rendering);
  if (op == "*" && (a.is_text() || is_list(a)) && b.is_integer()) return repeated(a, b.integer(), rendering);
  if (op == "*" && (b.is_text() || is_list(b)) && a.is_integer()) return repeated(b, a.integer(), rendering);
  if (op == "%" && a.is_text()) rendering.wrong("formatting a text with % is not supported");
  wrong_operands(op, a, b, rendering);
}

bool contains(const Value& heap, const Value& needle, Rendering& rendering) {
  if (heap.is_text()) {
    if (!needle.is_text()) wrong_operands("in", needle, heap, rendering);
    rendering.charge(std::ssize(heap.text()));
    return heap.text().find(needle.text()) != std::string::npos;
  }
  if (heap.is<DictPtr>()) {
    rendering.charge(std::ssize(heap.dict().members));
    const bool is_list = needle.is<ListPtr>() && needle.list().kind == ListKind::kList;
    if (is_list || needle.is<DictPtr>()) wrong_operands("in", needle, heap, rendering);
    return needle.is_text() && heap.dict().find(needle.text()) != nullptr;
  }
  const std::vector<Value> items = items_of(heap, rendering);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return equal(item, needle, rendering); });
}

bool compares(std::string_view op, const Value& a, const Value& b, Rendering& rendering) {
  if (op == "==") return equal(a, b, rendering);
  if (op == "!=") return !equal(a, b, rendering);
  if (op == "in") return contains(b, a, rendering);
  if (op == "not in") return !contains(b, a, rendering);
  if (a.is<Undefined>() || b.is<Undefined>()) wrong_operands(op, a, b, rendering);
  if (a.is_number() && b.is_number() && (std::isnan(a.number()) || std::isnan(b.number()))) return false;
  const int order = compare(a, b, rendering);
  return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
}

Value subscript(const Value& value, const Value& key, Rendering& rendering) {
  const auto missing = [&] {
    return Value::undefined(key.is_text()
                                ? fmt::format("'{}' of a {}", key.text().substr(0, 40), type_of(value))
                                : fmt::format("an element of a {}", type_of(value)));
  };
  if (value.is<Undefined>()) rendering.wrong("{} is undefined", value.as<Undefined>().what);
  if (value.is<DictPtr>()) {
    rendering.charge(std::ssize(value.dict().members));
    const Value* found = key.is_text() ? value.dict().find(key.text()) : nullptr;
    return found == nullptr ? missing() : *found;
  }
  if (!key.is_integer() || (!value.is_text() && !is_list(value))) return missing();
  std::vector<std::string_view> characters;
  if (value.is_text()) characters = characters_of(value.text(), rendering);
  const int64_t size = value.is_text() ? std::ssize(characters) : std::ssize(value.list().items);
  const int64_t at = key.integer() < 0 ? key.integer() + size : key.integer();
  if (at < 0 || at >= size) return missing();
  const auto i = static_cast<size_t>(at);
  return value.is_text() ? make_text(std::string(characters[i]), rendering) : value.list().items[i];
}

Value slice(const Value& value, const Value& first, const Value& end, const Value& step,
            Rendering& rendering) {
  if (value.is<Undefined>()) rendering.wrong("{} is undefined", value.as<Undefined>().what);
  if (value.is_text()) {
    const std::vector<std::string_view> characters = characters_of(value.text(), rendering);
    std::string text;
    for (const int64_t at : positions(std::ssize(characters), first, end, step, rendering))
      text += characters[static_cast<size_t>(at)];
    return make_text(std::move(text), rendering);
  }
  if (!is_list(value)) rendering.wrong("a {} has no parts to take with [:]", type_of(value));
  std::vector<Value> items;
  for (const int64_t at : positions(std::ssize(value.list().items), first, end, step, rendering))
    items.push_back(value.list().items[static_cast<size_t>(at)]);
  return make_list(std::move(items), value.list().kind, rendering);
}

}  // namespace tycho::jinja
