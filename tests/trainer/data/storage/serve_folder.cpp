// A web server of a folder for scripts: prints its URL, and ends with its standard input.
#include <unistd.h>

#include <cstdio>

#include "tests/trainer/data/storage/http_server.h"

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "serve_folder FOLDER\n"), 2;
  const tycho::testing::HttpServer server(arguments[1]);
  std::printf("%s\n", server.url().c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
