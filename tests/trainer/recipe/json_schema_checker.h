// A checker of JSON against a JSON Schema, for the keywords that Tycho writes. Another keyword is an error.
#pragma once
#include <algorithm>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

class JsonSchemaChecker {
 public:
  explicit JsonSchemaChecker(const Json& schema) : whole_(schema) {}
  /// Returns the problems, each with its path.
  std::vector<std::string> problems_of(const Json& value) const { return check(whole_, value, ""); }

 private:
  using Problems = std::vector<std::string>;

  Problems check(const Json& schema, const Json& value, const std::string& path) const {
    Problems problems;
    for (const auto& [keyword, rule] : schema.items()) {
      const Problems more = check_keyword(keyword, rule, schema, value, path);
      problems.insert(problems.end(), more.begin(), more.end());
    }
    return problems;
  }
  bool accepts(const Json& schema, const Json& value) const { return check(schema, value, "").empty(); }

  static bool has_type(const std::string& type, const Json& value) {
    if (type == "integer")
      return value.is_number_integer() ||
             (value.is_number() && value.get<double>() == static_cast<double>(value.get<int64_t>()));
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "boolean" ? value.is_boolean()
           : type == "null"    ? value.is_null()
           : type == "number"  ? value.is_number()
                               : throw std::runtime_error("unknown type " + type);
  }

  Problems check_keyword(const std::string& keyword, const Json& rule, const Json& schema, const Json& value,
                         const std::string& path) const {
    const auto unless = [&](bool holds) { return holds ? Problems{} : Problems{path + ": " + keyword}; };
    if (keyword == "$schema" || keyword == "$defs" || keyword == "title" || keyword == "description" ||
        keyword == "default" || keyword == "then")
      return {};
    if (keyword == "$ref") {
      const auto pointer = rule.get<std::string>();
      return check(whole_.at(Json::json_pointer(pointer.substr(1))), value, path);
    }
    if (keyword == "type") return unless(has_type(rule, value));
    if (keyword == "const") return unless(value == rule);
    if (keyword == "enum") return unless(std::find(rule.begin(), rule.end(), value) != rule.end());
    if (keyword == "anyOf")
      return unless(std::any_of(rule.begin(), rule.end(), [&](const Json& s) { return accepts(s, value); }));
    if (keyword == "if") return accepts(rule, value) ? check(schema.at("then"), value, path) : Problems{};
    if (keyword == "allOf") {
      Problems problems;
      for (const Json& one : rule) {
        const Problems more = check(one, value, path);
        problems.insert(problems.end(), more.begin(), more.end());
      }
      return problems;
    }
    if (keyword == "pattern")
      return unless(!value.is_string() ||
                    std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>())));
    if (keyword == "minimum") return unless(!value.is_number() || value >= rule);
    if (keyword == "exclusiveMinimum") return unless(!value.is_number() || value > rule);
    if (keyword == "maximum") return unless(!value.is_number() || value <= rule);
    if (keyword == "exclusiveMaximum") return unless(!value.is_number() || value < rule);
    if (keyword == "multipleOf")
      return unless(!value.is_number() || value.get<int64_t>() % rule.get<int64_t>() == 0);
    if (keyword == "minItems") return unless(!value.is_array() || value.size() >= rule.get<size_t>());
    if (keyword == "maxItems") return unless(!value.is_array() || value.size() <= rule.get<size_t>());
    return check_members(keyword, rule, schema, value, path);
  }

  Problems check_members(const std::string& keyword, const Json& rule, const Json& schema, const Json& value,
                         const std::string& path) const {
    Problems problems;
    const auto add = [&](const Json& part, const Json& member, const std::string& name) {
      const Problems more = check(part, member, path + "/" + name);
      problems.insert(problems.end(), more.begin(), more.end());
    };
    if (keyword == "items") {
      for (size_t i = 0; value.is_array() && i < value.size(); ++i) add(rule, value[i], std::to_string(i));
    } else if (keyword == "required") {
      for (const auto& name : rule)
        if (value.is_object() && !value.contains(name.get<std::string>()))
          problems.push_back(path + "/" + name.get<std::string>() + ": required");
    } else if (keyword == "properties") {
      for (const auto& [name, part] : rule.items())
        if (value.is_object() && value.contains(name)) add(part, value.at(name), name);
    } else if (keyword == "additionalProperties") {
      if (!value.is_object()) return problems;
      for (const auto& [name, member] : value.items()) {
        if (schema.contains("properties") && schema.at("properties").contains(name)) continue;
        if (rule.is_boolean() && !rule.get<bool>()) problems.push_back(path + "/" + name + ": unknown");
        if (rule.is_object()) add(rule, member, name);
      }
    } else {
      throw std::runtime_error("unknown keyword " + keyword);
    }
    return problems;
  }

  Json whole_;
};

}  // namespace tycho
