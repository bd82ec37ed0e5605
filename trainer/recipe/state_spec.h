// State that an optimizer keeps for a parameter.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// One tensor of fp32 numbers, with its name in checkpoints: "exp_avg".
struct StateSpec {
  std::string name;
  std::vector<int64_t> shape = {};  // rows and columns; empty: a number for each element of the parameter
  bool scalar = false;              // one number, kept on the host; its shape is [1, 1]
  double first = 0;                 // what its numbers begin with

  bool is_like_parameter() const { return shape.empty(); }
  bool operator==(const StateSpec&) const = default;
};

}  // namespace tycho
