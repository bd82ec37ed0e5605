// Terms of losses for tests, from prefix notation: "sub lse target", "mul 0.01 mul lse lse".
#pragma once
#include <algorithm>
#include <sstream>
#include <string>

#include "trainer/expression/expression.h"
#include "trainer/expression/loss_expression.h"

namespace tycho {

inline int64_t add_term_node(std::istringstream& words, Json& nodes) {
  std::string word;
  words >> word;
  Json node = Json::array();
  const auto* input = std::find(kLossInputs.begin(), kLossInputs.end(), word == "most" ? "max" : word);
  const auto* op = std::find_if(std::begin(kOperations), std::end(kOperations),
                                [&](const Operation& one) { return word == one.name; });
  if (word == "mean" || (input != kLossInputs.end() && op == std::end(kOperations))) {
    node = {"input", input - kLossInputs.begin()};
  } else if (op != std::end(kOperations)) {
    node.push_back(word);
    for (int i = 0; i < op->arguments; ++i) node.push_back(add_term_node(words, nodes));
  } else {
    node = {"number", std::stod(word)};
  }
  nodes.push_back(node);
  return static_cast<int64_t>(nodes.size()) - 1;
}

/// Returns a term in prefix notation. "max" is the operation, "most" the largest logit.
inline Json term_of(const std::string& prefix) {
  std::istringstream words(prefix);
  Json nodes = Json::array(), inputs = Json::array();
  const int64_t last = add_term_node(words, nodes);
  for (const char* name : kLossInputs) inputs.push_back({{"name", name}});
  return {
      {"inputs", inputs}, {"nodes", nodes}, {"outputs", Json::array({{{"name", "loss"}, {"node", last}}})}};
}

}  // namespace tycho
