// Finds the folder of a shared library.
#pragma once
#include <dlfcn.h>

#include <filesystem>

namespace tycho {

/// Returns the folder of the shared library that holds a function.
inline std::filesystem::path library_folder(void* function) {
  Dl_info info;
  dladdr(function, &info);
  return std::filesystem::absolute(info.dli_fname).parent_path();
}

}  // namespace tycho
