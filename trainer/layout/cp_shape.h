// The ranks along the mesh's cp axis, in the form that layouts need.
#pragma once
#include <cstdint>

namespace tycho {

struct CpShape {
  int64_t size = 1, rank = 0;
  bool ring = false;  // keys and values travel from rank to rank; else every rank gathers all
};

}  // namespace tycho
