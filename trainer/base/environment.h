// Variables of this process's environment.
#pragma once
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace tycho {

/// Returns the value of an environment variable; "" when it is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns the value of the first of these variables that is not empty; "" when all are.
inline std::string first_environment_variable(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = environment_variable(name); !value.empty()) return value;
  return "";
}

}  // namespace tycho
