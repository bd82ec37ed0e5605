// Images as memory files, which dlopen takes by their place in /proc.
#include "tests/standin_nvrtc/image.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace standin {
namespace {

constexpr const char kMagic[8] = {'s', 't', 'a', 'n', 'd', 'i', 'n', '1'};

struct Head {
  char magic[8] = {};
  uint64_t num_bytes = 0;
};

}  // namespace

std::string image_of(const std::string& library) {
  Head head{.num_bytes = library.size()};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + library;
}

RunImage open_image(const void* image) {
  Head head;
  std::memcpy(&head, image, sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) {
    std::fprintf(stderr, "[standin] this is no image of the stand-in for NVRTC\n");
    return nullptr;
  }
  const int file = memfd_create("tycho_program", 0);
  const char* next = static_cast<const char*>(image) + sizeof head;
  for (uint64_t left = head.num_bytes; left > 0;) {
    const ssize_t written = write(file, next, left);
    if (written <= 0) break;
    next += written, left -= static_cast<uint64_t>(written);
  }
  void* const library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "[standin] %s\n", dlerror());
  // The file stays open: a second one of its number would be taken for the first.
  return library == nullptr ? nullptr : reinterpret_cast<RunImage>(dlsym(library, kRunImage));
}

}  // namespace standin
