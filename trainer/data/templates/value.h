// Values of a template: Python's types, in the subset that templates need.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/data/templates/rendering.h"

namespace tycho::jinja {

class Value;
struct List;
struct Dict;
struct Loop;
struct Statement;  // a macro; see syntax.h
struct Namespace;

/// A name without a value: printed as an empty text, an error in other uses.
struct Undefined {
  std::string what;  // for messages: "x"
};
struct None {};
enum class Function { kRaiseException, kStrftimeNow, kRange, kNamespace, kDict };

using Text = std::shared_ptr<const std::string>;
using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;

/// Immutable except for namespaces and loops; cheap to copy.
class Value {
 public:
  using Data = std::variant<Undefined, None, bool, int64_t, double, Text, ListPtr, DictPtr, Namespace*,
                            Function, std::shared_ptr<Loop>, const Statement*>;
  Value() : data_(None()) {}
  Value(Data data) : data_(std::move(data)) {}
  explicit Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  static Value undefined(std::string what) { return Data(Undefined{std::move(what)}); }

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(data_);
  }
  bool is_text() const { return is<Text>(); }
  const std::string& text() const { return *as<Text>(); }
  const List& list() const { return *as<ListPtr>(); }
  const Dict& dict() const { return *as<DictPtr>(); }
  /// True for Python's int, of which bool is a subclass.
  bool is_integer() const { return is<int64_t>() || is<bool>(); }
  int64_t integer() const { return is<bool>() ? as<bool>() : as<int64_t>(); }
  bool is_number() const { return is_integer() || is<double>(); }
  double number() const { return is<double>() ? as<double>() : static_cast<double>(integer()); }

 private:
  Data data_;
};

/// kOnce stands for Python's generators, which can be walked once and have no length.
enum class ListKind { kList, kTuple, kView, kOnce };

struct List {
  std::vector<Value> items;
  ListKind kind = ListKind::kList;
  int depth = 1;               // nesting of the items, this list included
  int64_t bytes = 0;           // size of the items, this list included
  mutable bool spent = false;  // kOnce: already walked
};

struct Dict {
  std::vector<std::pair<std::string, Value>> members;
  int depth = 1;
  int64_t bytes = 0;
  const Value* find(std::string_view key) const;
};

/// Result of `namespace()`: the only value that a template can change. Owned by Scopes.
struct Namespace {
  std::vector<std::pair<std::string, Value>> members;
};

/// State of a `for`: `loop` in its body.
struct Loop {
  std::vector<Value> items;
  size_t index = 0;
  int nesting = 1;  // nesting of the items, this loop included
};

/// Make values. Throw Error for values that nest too deep or are too large.
Value make_list(std::vector<Value> items, ListKind kind, Rendering& rendering);
Value make_dict(std::vector<std::pair<std::string, Value>> members, Rendering& rendering);
Value make_text(std::string text, Rendering& rendering);
std::shared_ptr<Loop> make_loop(std::vector<Value> items, Rendering& rendering);

/// Returns Python's name of the type: "str".
std::string type_of(const Value& value);
/// Python's bool().
bool truth(const Value& value);
/// Python's ==.
bool equal(const Value& a, const Value& b, Rendering& rendering);
/// Returns a number below, at or above 0, as Python orders the values. Throws Error for values that have no
/// order.
int compare(const Value& a, const Value& b, Rendering& rendering);
/// Returns the items that a `for` visits: characters of a text, keys of a dict, nothing for an undefined
/// value. Throws Error for values that are no sequence, and for a generator that is walked a second time.
std::vector<Value> items_of(const Value& value, Rendering& rendering);

}  // namespace tycho::jinja
