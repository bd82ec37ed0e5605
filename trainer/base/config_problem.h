// One thing that is wrong with a config.
#pragma once
#include <string>

namespace tycho {

struct ConfigProblem {
  std::string path;     // dotted, list items from 1: "model.heads", "optimizer.betas[2]"
  std::string message;  // what is wrong and what to write: "6 is not a multiple of kv_heads = 4"
};

}  // namespace tycho
