// Images that the stand-in for NVRTC makes: a shared library of this machine as bytes.
#pragma once
#include <string>

namespace standin {

/// Runs every thread of a grid. `arguments` is the kernel's argument.
using RunImage = void (*)(unsigned blocks, unsigned threads, const void* arguments);
inline constexpr const char* kRunImage = "tycho_run_image";

/// Returns the library with its size before it, as code that says its own size.
std::string image_of(const std::string& library);
/// Opens the library of an image, and keeps it open; null with a line on stderr if it cannot be opened.
RunImage open_image(const void* image);

}  // namespace standin
