// The stand-in hub as a program for scripts: prints its URL, and at the end of its standard input what was
// asked.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/trainer/hub/hub_server.h"

namespace fs = std::filesystem;

namespace {

constexpr size_t kLargeBytes = 100'000;  // files above are on the second host, as the hub's large ones

/// Serves FOLDER/models/OWNER/NAME/... and FOLDER/datasets/OWNER/NAME/...
void add_files(tycho::testing::HubServer& server, const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    fs::path repository, path;
    int depth = 0;
    for (const fs::path& part : fs::relative(entry.path(), folder))
      (++depth <= 3 ? repository : path) /= part;
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    server.add_file(repository, path, bytes.str(), bytes.str().size() > kLargeBytes);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "serve_hub FOLDER\n"), 2;
  tycho::testing::HubServer server;
  add_files(server, arguments[1]);
  std::printf("%s\n", server.url().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  std::printf("%d requests\n", server.num_requests());
  for (const std::string& problem : server.problems()) std::printf("problem: %s\n", problem.c_str());
  return server.problems().empty() ? 0 : 1;
}
