// Reads tokenizer files; errors name file and field.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {

inline constexpr int64_t kMaxTokenId = (1 << 24) - 1;

/// Reads fields of one file. Throws Error that names the file.
class TokenizerReader {
 public:
  // Json takes quadratic time for a vocabulary.
  using Value = SortedJson;

  explicit TokenizerReader(const std::string& place) : place_(place) {}

  template <class... Args>
  [[noreturn]] void malformed(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::kUnusable, "[tokenizer] {}: {}", place_, fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] void unsupported(const std::string& what) const {
    malformed(
        "{} is not supported; BPE as of GPT-2, GPT-NeoX, Llama 2 and 3, Qwen and SmolLM is: take one of "
        "these, or "
        "train one with `tycho tokenizer train`",
        what);
  }

  const Value& member(const Value& object, const char* key, const char* where) const {
    const auto it = object.is_object() ? object.find(key) : object.end();
    if (it == object.end()) malformed("{} has no \"{}\"", where, key);
    return *it;
  }

  std::string text(const Value& object, const char* key, const char* where) const {
    const Value& value = member(object, key, where);
    if (!value.is_string()) malformed("\"{}\" of {} must be a string", key, where);
    return value.get<std::string>();
  }

  bool flag(const Value& object, const char* key, bool otherwise) const {
    const auto it = object.find(key);
    if (it == object.end() || it->is_null()) return otherwise;
    if (!it->is_boolean()) malformed("\"{}\" must be true or false", key);
    return it->get<bool>();
  }

  /// Returns the items of a Sequence and of Sequences inside it, in order; the component itself if it is no
  /// Sequence.
  std::vector<Value> flat(const Value& component, const char* list, int depth = 0) const {
    if (component.is_null()) return {};
    if (!component.is_object() || !component.contains("type") || component["type"] != "Sequence")
      return {component};
    if (depth > 8) malformed("Sequences nested more than 8 deep");
    const Value& items = member(component, list, "a Sequence");
    if (!items.is_array()) malformed("\"{}\" must be a list", list);
    std::vector<Value> all;
    for (const Value& item : items)
      for (Value& inner : flat(item, list, depth + 1)) all.push_back(std::move(inner));
    if (all.size() > 100) malformed("a Sequence of more than 100 steps");
    return all;
  }

  int32_t id(const Value& value, const std::string& token) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMaxTokenId))
      malformed("the id of token \"{}\" must be a whole number from 0 to {}", token, kMaxTokenId);
    return value.get<int32_t>();
  }

 private:
  std::string place_;
};

/// The "type" of a component, or "?".
inline std::string kind_of(const TokenizerReader::Value& component) {
  if (!component.is_object() || !component.contains("type") || !component["type"].is_string()) return "?";
  return component["type"].get<std::string>();
}

}  // namespace tycho
