// A stand-in for libnvrtc.so.13, which compiles for this machine with the compiler that built the tests.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/standin_nvrtc/image.h"

namespace {

struct Program {
  std::string text, log, image;
};

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Options of nvcc's that this stands in for; others are an error, as in NVRTC.
bool knows(const std::string& option) {
  return option == "--fmad=false" || option == "--std=c++20" || option.starts_with("--gpu-architecture=");
}

/// Returns what the compiler says if it makes no library, else "".
std::string compile(const std::string& text, std::string& image) {
  char folder[] = "/tmp/standin_nvrtc_XXXXXX";
  if (mkdtemp(folder) == nullptr) return "no folder in /tmp";
  const std::string base = folder, source = base + "/program.cpp", library = base + "/program.so";
  std::ofstream(source) << "#include \"" STANDIN_NVRTC_HEADER "\"\n"
                        << text
                        << "extern \"C\" void tycho_run_image(unsigned blocks, unsigned threads, const void* "
                           "arguments) {\n"
                           "  STANDIN_RUN(tycho_program, arguments, blocks, threads);\n}\n";
  // Linked without the flags: the emulator answers the sanitizers' calls.
  const std::string object = base + "/program.o", compiler = STANDIN_NVRTC_COMPILER,
                    to_log = " >>" + base + "/log 2>&1";
  // The compiler is not to run with what stands in for a GPU.
  const std::string command = "unset LD_PRELOAD; " + compiler +
                              " -std=c++20 -fPIC -w -ffp-contract=off " STANDIN_NVRTC_FLAGS " -c " + source +
                              " -o " + object + to_log + " && " + compiler + " -shared " + object + " -o " +
                              library + " " STANDIN_NVRTC_LIBRARIES + to_log;
  const bool made = std::system(command.c_str()) == 0;
  std::string log = made ? "" : command + "\n" + read(base + "/log");
  if (made) image = standin::image_of(read(library));
  for (const char* name : {"/program.cpp", "/program.o", "/program.so", "/log"})
    unlink((base + name).c_str());
  rmdir(folder);
  return log;
}

}  // namespace

#define STANDIN_API extern "C" __attribute__((visibility("default")))

/// No version of the real one, so that the two share no cached programs.
STANDIN_API int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = STANDIN_NVRTC_MINOR, 0; }
STANDIN_API int nvrtcGetNumSupportedArchs(int* count) { return *count = 2, 0; }
STANDIN_API int nvrtcGetSupportedArchs(int* archs) { return archs[0] = 80, archs[1] = 90, 0; }
STANDIN_API int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*,
                                   const char* const*) {
  return *program = new Program{text, "", ""}, 0;
}
STANDIN_API int nvrtcCompileProgram(void* handle, int num_options, const char* const* options) {
  auto& program = *static_cast<Program*>(handle);
  for (int i = 0; i < num_options; ++i)
    if (!knows(options[i])) return program.log = std::string("unrecognized option ") + options[i], 5;
  program.log = compile(program.text, program.image);
  return program.image.empty() ? 6 : 0;
}
STANDIN_API int nvrtcGetProgramLogSize(void* program, size_t* size) {
  return *size = static_cast<Program*>(program)->log.size() + 1, 0;
}
STANDIN_API int nvrtcGetProgramLog(void* program, char* log) {
  return std::strcpy(log, static_cast<Program*>(program)->log.c_str()), 0;
}
STANDIN_API int nvrtcGetCUBINSize(void* program, size_t* size) {
  return *size = static_cast<Program*>(program)->image.size(), 0;
}
STANDIN_API int nvrtcGetCUBIN(void* program, char* code) {
  const std::string& image = static_cast<Program*>(program)->image;
  return std::copy(image.begin(), image.end(), code), 0;
}
STANDIN_API int nvrtcGetPTXSize(void* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
STANDIN_API int nvrtcGetPTX(void* program, char* code) { return nvrtcGetCUBIN(program, code); }
STANDIN_API int nvrtcDestroyProgram(void** program) {
  return delete static_cast<Program*>(*program), *program = nullptr, 0;
}
