// Appends entries as JSON lines and reads back only the newest part of the file.
#include "host/repl/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMaxBytes = 2 << 20;  // limit of the bytes read, and about that of the file

/// Returns the lines at the end of a file.
std::vector<std::string> newest_lines(const std::string& path, bool& too_long) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<std::string> lines;
  if (!in) return lines;
  const auto size = static_cast<int64_t>(in.tellg());
  too_long = size > 2 * kMaxBytes;
  in.seekg(std::max<int64_t>(0, size - kMaxBytes));
  std::string line;
  if (size > kMaxBytes) std::getline(in, line);  // the rest of one that was cut
  while (std::getline(in, line)) lines.push_back(line);
  return lines;
}

void append(const std::string& path, const std::string& text, int flags) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (fd < 0) return;
  const ssize_t ignored = write(fd, text.data(), text.size());
  static_cast<void>(ignored);
  close(fd);
}

}  // namespace

ReplHistory::ReplHistory(std::string path) : path_(std::move(path)), folder_(fs::current_path()) {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::create_directories(fs::path(path_).parent_path(), ignored);
  bool too_long = false;
  const std::vector<std::string> lines = newest_lines(path_, too_long);
  std::string kept;
  for (const std::string& line : lines) {
    const Json entry = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object() || !entry.contains("text") || !entry.at("text").is_string()) continue;
    entries_.push_back({entry.at("text"), entry.value("folder", "")});
    kept += line + "\n";
  }
  if (too_long) append(path_, kept, O_TRUNC);
}

std::vector<std::string> ReplHistory::earlier() const {
  std::vector<std::string> texts;
  for (const bool mine : {false, true})
    for (const Entry& entry : entries_)
      if ((entry.folder == folder_) == mine) texts.push_back(entry.text);
  return texts;
}

void ReplHistory::add(const std::string& text, double seconds) {
  entries_.push_back({text, folder_});
  if (path_.empty()) return;
  const Json line = {{"text", text}, {"time", std::time(nullptr)}, {"folder", folder_}, {"seconds", seconds}};
  append(path_, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", O_APPEND);
}

std::string ReplHistory::matching(const std::string& part) const {
  std::string lines;
  for (const Entry& entry : entries_)
    if (entry.folder == folder_ && entry.text.find(part) != std::string::npos)
      lines += "  " + entry.text + "\n";
  return lines.empty() ? "  nothing\n" : lines;
}

std::string history_path() {
  if (const std::string state = environment_variable("XDG_STATE_HOME"); !state.empty())
    return state + "/tycho/history.jsonl";
  if (const std::string home = environment_variable("HOME"); !home.empty())
    return home + "/.local/state/tycho/history.jsonl";
  return "";
}

}  // namespace tycho
