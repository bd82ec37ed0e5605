// Names as all stores of MLflow take them.
#include "trainer/loggers/mlflow_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "trainer/base/json.h"

namespace tycho {

std::string mlflow_key(std::string_view name) {
  constexpr size_t kMostKeyBytes = 250;
  std::string key, clean;
  for (const char c : name) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                      std::string_view("_-.:/ ").find(c) != std::string_view::npos;
    clean += good ? c : '_';
  }
  std::istringstream parts(clean);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part.empty()) continue;
    if (part == "." || part == "..") part.assign(part.size(), '_');
    key += (key.empty() ? "" : "/") + part;
  }
  key.resize(std::min(key.size(), kMostKeyBytes));
  while (key.ends_with('/')) key.pop_back();
  return key.empty() ? "_" : key;
}

void MlflowTables::read(const std::string& tag) {
  const Json list = Json::parse(tag.empty() ? "[]" : tag, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return;
  for (const Json& one : list) {
    const Json path = one.is_object() ? one.value("path", Json()) : Json();
    if (!path.is_string()) continue;
    const std::string text = path.get<std::string>();
    paths_[text.substr(0, text.rfind('/'))] = text;
  }
}

std::string MlflowTables::add(const std::string& name, int64_t step) {
  const std::string folder = "tables/" + mlflow_key(name);
  return paths_[folder] = fmt::format("{}/step-{:09}.json", folder, step);
}

std::string MlflowTables::tag() const {
  constexpr size_t kMostTagBytes = 5000;
  Json list = Json::array();
  std::string text = list.dump();
  for (const auto& [folder, path] : paths_) {
    list.push_back({{"path", path}, {"type", "table"}});
    std::string longer = list.dump();
    if (longer.size() > kMostTagBytes) break;
    text = std::move(longer);
  }
  return text;
}

}  // namespace tycho
