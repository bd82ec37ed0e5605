// The stand-in hub as a program for scripts: prints its URL, and at the end of its standard input what was
// asked.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/trainer/hub/hub_server.h"

namespace fs = std::filesystem;

namespace {

/// Serves FOLDER/models/OWNER/NAME/... and FOLDER/datasets/OWNER/NAME/... Larger files are on the second
/// host, as the hub's are.
void add_files(tycho::testing::HubServer& server, const fs::path& folder, size_t large_bytes) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    fs::path repository, path;
    int depth = 0;
    for (const fs::path& part : fs::relative(entry.path(), folder))
      (++depth <= 3 ? repository : path) /= part;
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    server.add_file(repository, path, bytes.str(), bytes.str().size() > large_bytes);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 3) return std::fprintf(stderr, "serve_hub FOLDER [LARGE_BYTES]\n"), 2;
  tycho::testing::HubServer server;
  add_files(server, arguments[1], count == 3 ? std::strtoull(arguments[2], nullptr, 10) : 100'000);
  std::printf("%s\n", server.url().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  for (const std::string& request : server.requests()) std::printf("%s\n", request.c_str());
  std::printf("%d requests\n", server.num_requests());
  for (const std::string& problem : server.problems()) std::printf("problem: %s\n", problem.c_str());
  return server.problems().empty() ? 0 : 1;
}
