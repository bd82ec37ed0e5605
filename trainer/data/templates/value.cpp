// Python's rules for truth, equality and order.
#include "trainer/data/templates/value.h"

#include <algorithm>
#include <limits>

#include "trainer/data/templates/python_text.h"

namespace tycho::jinja {
namespace {

constexpr int64_t kItemBytes = 32;

int depth_of(const Value& value) {
  if (value.is<ListPtr>()) return value.list().depth;
  if (value.is<std::shared_ptr<Loop>>()) return value.as<std::shared_ptr<Loop>>()->nesting;
  return value.is<DictPtr>() ? value.dict().depth : 0;
}

int64_t bytes_of(const Value& value) {
  if (value.is_text()) return kItemBytes + static_cast<int64_t>(value.text().size());
  if (value.is<ListPtr>()) return value.list().bytes;
  return value.is<DictPtr>() ? value.dict().bytes : kItemBytes;
}

void check_size(int64_t bytes, int depth, Rendering& rendering) {
  if (bytes > kMaxValueBytes) rendering.wrong("a value is larger than {} bytes", kMaxValueBytes);
  if (depth > kMaxNesting) rendering.wrong("values are nested more than {} deep", kMaxNesting);
}

bool same_kind(const List& a, const List& b) {
  if (a.kind == ListKind::kView || b.kind == ListKind::kView) return true;
  return a.kind == b.kind && a.kind != ListKind::kOnce;
}

bool equal_dicts(const Dict& a, const Dict& b, Rendering& rendering) {
  if (a.members.size() != b.members.size()) return false;
  return std::all_of(a.members.begin(), a.members.end(), [&](const auto& member) {
    const Value* other = b.find(member.first);
    return other != nullptr && equal(member.second, *other, rendering);
  });
}

template <class T>
int order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&name = key](const auto& member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

Value make_list(std::vector<Value> items, ListKind kind, Rendering& rendering) {
  auto list = std::make_shared<List>();
  list->bytes = kItemBytes;
  for (const Value& item : items) {
    list->depth = std::max(list->depth, 1 + depth_of(item));
    list->bytes += bytes_of(item);
    check_size(list->bytes, list->depth, rendering);
  }
  rendering.charge(kItemBytes * (1 + std::ssize(items)));
  list->items = std::move(items);
  list->kind = kind;
  return Value::Data(ListPtr(std::move(list)));
}

Value make_dict(std::vector<std::pair<std::string, Value>> members, Rendering& rendering) {
  auto dict = std::make_shared<Dict>();
  dict->bytes = kItemBytes;
  for (auto& [key, value] : members) {
    dict->depth = std::max(dict->depth, 1 + depth_of(value));
    dict->bytes += kItemBytes + static_cast<int64_t>(key.size()) + bytes_of(value);
    check_size(dict->bytes, dict->depth, rendering);
    rendering.charge(kItemBytes + std::ssize(dict->members));
    const auto earlier = std::find_if(dict->members.begin(), dict->members.end(),
                                      [&name = key](const auto& member) { return member.first == name; });
    if (earlier != dict->members.end()) {
      earlier->second = std::move(value);
    } else {
      dict->members.emplace_back(std::move(key), std::move(value));
    }
  }
  return Value::Data(DictPtr(std::move(dict)));
}

Value make_text(std::string text, Rendering& rendering) {
  check_size(std::ssize(text), 0, rendering);
  rendering.charge(kItemBytes + std::ssize(text));
  return Value(std::move(text));
}

std::shared_ptr<Loop> make_loop(std::vector<Value> items, Rendering& rendering) {
  auto loop = std::make_shared<Loop>();
  for (const Value& item : items) loop->nesting = std::max(loop->nesting, 1 + depth_of(item));
  check_size(0, loop->nesting, rendering);
  loop->items = std::move(items);
  return loop;
}

std::string type_of(const Value& value) {
  if (value.is<None>()) return "None";
  if (value.is<bool>()) return "bool";
  if (value.is<int64_t>()) return "int";
  if (value.is<double>()) return "float";
  if (value.is_text()) return "str";
  if (value.is<DictPtr>()) return "dict";
  if (value.is<Namespace*>()) return "namespace";
  if (value.is<std::shared_ptr<Loop>>()) return "loop";
  if (value.is<Undefined>()) return "undefined";
  if (!value.is<ListPtr>()) return "function";
  const ListKind kind = value.list().kind;
  return kind == ListKind::kList ? "list" : kind == ListKind::kTuple ? "tuple" : "generator";
}

bool truth(const Value& value) {
  if (value.is<Undefined>() || value.is<None>()) return false;
  if (value.is_number()) return value.number() != 0;
  if (value.is_text()) return !value.text().empty();
  if (value.is<ListPtr>()) return value.list().kind == ListKind::kOnce || !value.list().items.empty();
  return !value.is<DictPtr>() || !value.dict().members.empty();
}

bool equal(const Value& a, const Value& b, Rendering& rendering) {
  rendering.charge(1);
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.is_text() && b.is_text()) {
    rendering.charge(static_cast<int64_t>(std::min(a.text().size(), b.text().size())) / 16);
    return a.text() == b.text();
  }
  if (a.is<ListPtr>() && b.is<ListPtr>())
    return same_kind(a.list(), b.list()) &&
           std::equal(a.list().items.begin(), a.list().items.end(), b.list().items.begin(),
                      b.list().items.end(),
                      [&](const Value& x, const Value& y) { return equal(x, y, rendering); });
  if (a.is<DictPtr>() && b.is<DictPtr>()) return equal_dicts(a.dict(), b.dict(), rendering);
  if (a.is<Namespace*>() && b.is<Namespace*>()) return a.as<Namespace*>() == b.as<Namespace*>();
  return (a.is<None>() && b.is<None>()) || (a.is<Undefined>() && b.is<Undefined>());
}

int compare(const Value& a, const Value& b, Rendering& rendering) {
  rendering.charge(1);
  if (a.is_integer() && b.is_integer()) return order(a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return order(a.number(), b.number());
  if (a.is_text() && b.is_text()) {
    rendering.charge(static_cast<int64_t>(std::min(a.text().size(), b.text().size())) / 16);
    return order(a.text(), b.text());  // bytes of UTF-8 are in the order of their characters
  }
  if (!a.is<ListPtr>() || !b.is<ListPtr>() || type_of(a) != type_of(b) || type_of(a) == "generator")
    rendering.wrong("{} and {} have no order", type_of(a), type_of(b));
  const auto &x = a.list().items, &y = b.list().items;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (!equal(x[i], y[i], rendering)) return compare(x[i], y[i], rendering);
  return order(x.size(), y.size());
}

std::vector<Value> items_of(const Value& value, Rendering& rendering) {
  std::vector<Value> items;
  if (value.is<Undefined>()) return items;
  if (value.is<ListPtr>()) {
    const List& list = value.list();
    if (list.spent)
      rendering.wrong("a filter's result is walked a second time, when Jinja has nothing left: add |list");
    list.spent = list.kind == ListKind::kOnce;
    rendering.charge(std::ssize(list.items));
    return list.items;
  }
  if (value.is_text()) {
    for (const std::string_view character : characters_of(value.text(), rendering))
      items.push_back(make_text(std::string(character), rendering));
  } else if (value.is<DictPtr>()) {
    for (const auto& member : value.dict().members) items.push_back(make_text(member.first, rendering));
  } else {
    rendering.wrong("{} is not a sequence", type_of(value));
  }
  return items;
}

}  // namespace tycho::jinja
