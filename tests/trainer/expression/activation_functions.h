// Functions that recipes might define as activations, as they are kept in a recipe.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Returns the function whose nodes, after x as node 0, these are; the last one is the result. JSON has ' for
/// ".
inline Json function_of_x(std::string nodes) {
  for (char& letter : nodes) letter = letter == '\'' ? '"' : letter;
  Json all = parse_json("[[\"input\",0]," + nodes + "]", "test");
  const auto last = static_cast<int64_t>(all.size()) - 1;
  return {{"inputs", Json::array({{{"name", "x"}}})},
          {"nodes", std::move(all)},
          {"outputs", Json::array({{{"name", "y"}, {"node", last}}})}};
}

inline Json silu_function() { return function_of_x("['sigmoid',0],['mul',0,1]"); }
/// x sigmoid(1.702 x).
inline Json quick_gelu_function() {
  return function_of_x("['number',1.702],['mul',0,1],['sigmoid',2],['mul',0,3]");
}
inline Json squared_relu_function() { return function_of_x("['number',0],['max',0,1],['mul',2,2]"); }

}  // namespace tycho
