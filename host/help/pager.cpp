// The pager reads the text from a pipe, as git's does.
#include "host/help/pager.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace tycho {
namespace {

constexpr int kNotFound = 127;  // of the shell: no such command

/// Returns true if the pager showed the text.
bool show_in(const std::string& pager, const std::string& text) {
  setenv("LESS", "FRX", 0);  // ends by itself when one screen holds everything
  std::fflush(stdout);
  FILE* pipe = popen(pager.c_str(), "w");
  if (pipe == nullptr) return false;
  // Ctrl-C belongs to the pager, which keeps the terminal until it ends.
  const auto before = std::signal(SIGINT, SIG_IGN);
  std::fwrite(text.data(), 1, text.size(), pipe);  // a pager that was left early takes no more
  const int status = pclose(pipe);
  std::signal(SIGINT, before);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
}

}  // namespace

void page_text(const std::string& text) {
  const char* given = std::getenv("PAGER");
  const std::string pager = given == nullptr ? "less" : given;
  const bool pages = isatty(STDOUT_FILENO) != 0 && !pager.empty() && pager != "cat";
  if (!pages || !show_in(pager, text)) fmt::print("{}", text);
}

}  // namespace tycho
