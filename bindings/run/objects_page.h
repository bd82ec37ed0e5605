// The page of all objects of a run, in Markdown.
#pragma once
#include <string>
#include <vector>

#include "bindings/run/class.h"

namespace tycho {

std::string objects_page(const std::vector<const Class*>& classes);

}  // namespace tycho
