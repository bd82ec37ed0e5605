// Forms and queries, read back.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho::testing {

/// Returns "a=b&c=d%2Fe" as an object.
inline Json decoded_pairs(std::string text) {
  Json pairs = Json::object();
  while (!text.empty()) {
    const std::string pair = text.substr(0, text.find('&'));
    text.erase(0, pair.size() + 1);
    std::string value;
    for (size_t i = pair.find('=') + 1; i < pair.size(); ++i)
      if (pair[i] == '%') {
        value += static_cast<char>(std::stoi(pair.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        value += pair[i];
      }
    pairs[pair.substr(0, pair.find('='))] = value;
  }
  return pairs;
}

}  // namespace tycho::testing
