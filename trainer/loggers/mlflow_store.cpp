// Names as all stores of MLflow take them.
#include "trainer/loggers/mlflow_store.h"

#include <algorithm>
#include <cctype>
#include <sstream>

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

}  // namespace tycho
