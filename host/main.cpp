// `tycho`: finds the verb, and turns the one exception into a message and an exit code.
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "bindings/define/recipe.h"
#include "host/help/explain.h"
#include "host/other_words.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/verb.h"
#include "host/verb_help.h"
#include "trainer/base/as_error.h"
#include "trainer/base/secrets.h"
#include "trainer/rendezvous/launcher_reports.h"

namespace tycho {
namespace {

/// Returns the verb of this name, or refuses it. `next` is the word after it, "" for none.
const Verb& find_verb(const std::string& name, const std::string& next) {
  for (const Verb& verb : all_verbs()) {
    if (name == verb.name) return verb;
  }
  refuse_verb(name, next);
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

int run_command(const std::vector<std::string>& argv) {
  bool help = false;
  if (argv.size() > 1 && asks_for_help(argv[0])) return explain({argv.begin() + 1, argv.end()});
  if (argv.empty() || asks_for_help(argv[0])) {
    fmt::print("{}", help_of_all_verbs());
    return static_cast<int>(argv.empty() ? ExitCode::kUsage : ExitCode::kOk);
  }
  const bool asks_for_version = argv[0] == "--version" || argv[0] == "-V";
  const Verb& verb = find_verb(asks_for_version ? "version" : argv[0], argv.size() > 1 ? argv[1] : "");
  std::vector<std::string> words(argv.begin() + 1, argv.end());
  // tycho run help, tycho data convert help; a file of that name is an argument.
  const bool is_plain = !words.empty() && words.size() <= 2 && !words.front().starts_with('-');
  if (is_plain && words.back() == "help" && !std::filesystem::exists("help")) words.back() = "--help";
  const Arguments arguments = parse_arguments(verb, words, help);
  if (help) return 0;
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (here.empty() && error == std::errc::no_such_file_or_directory)
    fail(ExitCode::kUnusable,
         "[tycho] expected a working folder that exists, got one that was removed: cd "
         "into another");
  return verb.run(arguments);
}

int report(const std::string& message, ExitCode code) {
  std::fflush(stdout);
  if (leave_to_launcher(without_secrets(message))) return static_cast<int>(code);
  // If nobody reads the message, the exit code still tells.
  std::fputs((without_secrets(message) + "\n").c_str(), stderr);
  return static_cast<int>(code);
}

/// Returns true when the command asks for JSON on standard output and its verb can print it.
bool asks_for_json(const std::vector<std::string>& argv) {
  if (argv.empty() || std::find(argv.begin(), argv.end(), "--json") == argv.end()) return false;
  for (const Verb& verb : all_verbs())
    if (argv[0] == verb.name)
      return std::any_of(verb.spec.options.begin(), verb.spec.options.end(), [](const OptionSpec& option) {
        return std::string_view(option.help) == kJsonOption.help;
      });
  return false;
}

/// Prints the JSON of a failed command with --json, in addition to the message on standard error.
void print_error_json(const std::exception& error, const Error& own) {
  const auto* of_recipe = dynamic_cast<const RecipeError*>(&error);
  const Json shown = {{"error",
                       {{"code", static_cast<int>(own.code())},
                        {"message", without_secrets(own.what())},
                        {"problems", of_recipe == nullptr ? Json::array() : of_recipe->problems()}}}};
  std::fputs((shown.dump(2, ' ', false, Json::error_handler_t::replace) + "\n").c_str(), stdout);
}

/// Returns the exit code for output that could not be flushed. A reader that left (`tycho config | head`)
/// gets no message.
int report_output(int error_number) {
  if (error_number == EPIPE) return static_cast<int>(ExitCode::kReaderGone);
  return report(fmt::format("[tycho] cannot write the output: {}", std::strerror(error_number)),
                ExitCode::kStorage);
}

/// Opens stand-ins for those of descriptors 0 to 2 that were closed when the program started; otherwise the
/// next file that it opens would get their numbers and receive the printed output. Reading from and writing
/// to the stand-ins fails.
void fill_standard_descriptors() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(file, F_GETFD) < 0 && open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

/// Returns true when the stack suffices for nested calls of Lua, JSON and templates: `ulimit -s` may leave
/// too little, here and for threads, which get the same size.
bool has_stack() {
  constexpr rlim_t kWanted = 8 << 20, kLeast = 1 << 20;
  pthread_attr_t of_threads;
  pthread_attr_init(&of_threads);
  pthread_attr_setstacksize(&of_threads, kWanted);
  pthread_setattr_default_np(&of_threads);
  pthread_attr_destroy(&of_threads);
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kWanted) return true;
  const rlimit raised = {kWanted, std::max(kWanted, limit.rlim_max)};  // root may raise the hard limit too
  const rlimit most = {std::min(kWanted, limit.rlim_max), limit.rlim_max};
  if (setrlimit(RLIMIT_STACK, &raised) == 0 || setrlimit(RLIMIT_STACK, &most) == 0)
    getrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur >= kLeast) return true;
  constexpr std::string_view kWhy =
      "[tycho] expected a stack of at least 1 MiB, got less: raise the limit, `ulimit -s 8192`\n";
  const ssize_t ignored =
      write(STDERR_FILENO, kWhy.data(), kWhy.size());  // printf may need more than there is
  static_cast<void>(ignored);
  return false;
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
    if (asks_for_json(argv)) print_error_json(error, own);
    return report(own.what(), own.code());
  }
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) {
  tycho::fill_standard_descriptors();
  if (!tycho::has_stack()) return static_cast<int>(tycho::ExitCode::kNumerics);
  tycho::take_standard_streams(tycho::stop_was_requested);
  const int code = tycho::guarded_main({argv + 1, argv + argc});
  tycho::finish_standard_streams();
  return code;
}
