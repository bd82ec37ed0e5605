// `tycho`: finds the verb, and turns the one exception into a message and an exit code.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "host/other_words.h"
#include "host/verb.h"
#include "host/verb_help.h"
#include "trainer/base/as_error.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

/// `next`: what follows the verb, "" for nothing.
const Verb& find_verb(const std::string& name, const std::string& next) {
  for (const Verb& verb : all_verbs()) {
    if (name == verb.name) return verb;
  }
  refuse_verb(name, next);
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

int run_command(const std::vector<std::string>& argv) {
  bool help = false;
  if (argv.size() > 1 && asks_for_help(argv[0])) {  // tycho help run, tycho help data convert
    std::vector<std::string> words(argv.begin() + 2, argv.end());
    words.emplace_back("--help");
    parse_arguments(find_verb(argv[1], ""), words, help);
    return 0;
  }
  if (argv.empty() || asks_for_help(argv[0])) {
    fmt::print("{}", help_of_all_verbs());
    return static_cast<int>(argv.empty() ? ExitCode::kUsage : ExitCode::kOk);
  }
  const Verb& verb = find_verb(argv[0] == "--version" ? "version" : argv[0], argv.size() > 1 ? argv[1] : "");
  const Arguments arguments = parse_arguments(verb, {argv.begin() + 1, argv.end()}, help);
  return help ? 0 : verb.run(arguments);
}

constexpr int kReaderGone = 128 + SIGPIPE;  // what a shell shows when a pipe's reader left

int report(const std::string& message, ExitCode code) {
  std::fflush(stdout);
  // If nobody reads the message, the exit code still tells.
  std::fputs((without_secrets(message) + "\n").c_str(), stderr);
  return static_cast<int>(code);
}

/// The output is complete only when it could be flushed. A reader that left (`tycho config | head`) needs no
/// message.
int report_output(int error_number) {
  if (error_number == EPIPE) return kReaderGone;
  return report(fmt::format("[tycho] cannot write the output: {}", std::strerror(error_number)),
                ExitCode::kStorage);
}

int guarded_main(const std::vector<std::string>& argv) {
  // A reader that goes away and a file-size limit become errors of the write itself.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = run_command(argv);
    return code == 0 && std::fflush(stdout) != 0 ? report_output(errno) : code;
  } catch (const std::exception& error) {
    // fmt says so when a write to stdout fails.
    const auto* refused = dynamic_cast<const std::system_error*>(&error);
    if (refused != nullptr && std::string(error.what()).starts_with("cannot write to file"))
      return report_output(refused->code().value());
    const Error own = as_error(error);
    return report(own.what(), own.code());
  }
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) { return tycho::guarded_main({argv + 1, argv + argc}); }
