// The name of a work folder ends with the number of its process. Folders of one process belong together.
#include "trainer/data/prepare/leftovers.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/prepare/conversion_state.h"
#include "trainer/data/prepare/publication.h"
#include "trainer/data/prepare/split_writer.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHalfWritten = ".tmp-";  // temporary files of write_file_atomically

struct Leftovers {
  std::map<std::string, std::vector<std::string>> folders;        // by process
  std::vector<std::pair<std::string, std::string>> half_written;  // process, path
};

/// True for names of files that conversions write next to the splits.
bool is_of_conversion(std::string_view name) {
  return name.starts_with(kPublication) || name.starts_with("tokenizer");
}

Leftovers find_leftovers(const std::string& out_dir) {
  Leftovers found;
  std::error_code error;
  for (fs::directory_iterator it(out_dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (const size_t at = name.find(kPartial); at != std::string::npos)
      found.folders[name.substr(at + kPartial.size())].push_back(it->path());
    else if (const size_t tmp = name.rfind(kHalfWritten); tmp != std::string::npos && is_of_conversion(name))
      found.half_written.emplace_back(name.substr(tmp + kHalfWritten.size()), it->path());
  }
  return found;
}

/// True if `process` is the number of no running process of this machine. False if it is not a number.
bool runs_nowhere_here(const std::string& process) {
  pid_t number = 0;
  const char* const end = process.data() + process.size();
  const auto [rest, problem] = std::from_chars(process.data(), end, number);
  return problem == std::errc() && rest == end && number > 0 && ::kill(number, 0) != 0 && errno == ESRCH;
}

bool is_gone(const Leftovers& found, const std::string& process) {
  const auto folders = found.folders.find(process);
  const bool in_use =
      folders != found.folders.end() && std::ranges::any_of(folders->second, is_folder_in_use);
  return !in_use && runs_nowhere_here(process);
}

bool has_state_of_another(const std::string& folder, const std::string& key) {
  return fs::exists(folder + "/" + kConversionState) && !read_conversion_state(folder, key);
}

/// Returns true if `remove` succeeded. It fails where another user owns the file.
template <class Remove>
bool removed(Remove remove) {
  try {
    remove();
    return true;
  } catch (const Error&) {
    return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> sweep_leftovers(FileOps& files, const std::string& out_dir, const std::string& key) {
  const Leftovers found = find_leftovers(out_dir);
  for (const auto& [process, path] : found.half_written)
    if (is_gone(found, process)) removed([&, path = path] { files.remove_file(path); });
  std::vector<std::string> warnings;
  for (const auto& [process, folders] : found.folders) {
    if (process == std::to_string(::getpid())) continue;
    const bool may_go =
        is_gone(found, process) && std::ranges::none_of(folders, [&](const std::string& folder) {
          return has_state_of_another(folder, key);
        });
    for (const std::string& folder : folders) {
      // Removes the state first, so that nothing continues from the rest after a kill.
      const bool gone = may_go && removed([&] {
                          remove_conversion_state(files, folder);
                          fs::remove_all(folder);
                        });
      if (!gone)
        warnings.push_back(
            fmt::format("{} is left over from an interrupted conversion, or belongs to one that is running; "
                        "delete it if nothing is running",
                        folder));
    }
  }
  return warnings;
}

}  // namespace tycho
