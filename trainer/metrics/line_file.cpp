// Lines that are written whole or marked as torn.
#include "trainer/metrics/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

bool ends_in_torn_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

}  // namespace

LineFile::LineFile(FileOps& files, const std::string& path)
    : path_(path), began_torn_(ends_in_torn_line(path)), torn_(began_torn_), file_(files.append(path)) {
  std::error_code not_a_file;  // a device, say
  const std::uintmax_t size = std::filesystem::file_size(path, not_a_file);
  begin_ = not_a_file ? 0 : static_cast<int64_t>(size);
}

void LineFile::write(std::string line) {
  line += '\n';
  if (torn_) line.insert(0, 1, '\n');
  torn_ = true;
  file_->write(line.data(), line.size());
  torn_ = false;
}

void LineFile::take_back() {
  file_->write("",
               0);  // fails where the folder has another owner by now: these lines are the last that are ours
  const int fd = ::open(path_.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  const bool is_cut = fd >= 0 && ::ftruncate(fd, begin_) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!is_cut) fail(ExitCode::kStorage, "[files] cannot shorten {}: {}", path_, std::strerror(error));
  torn_ = began_torn_;
}

int64_t next_attempt(const std::string& run_dir) {
  constexpr std::streamoff kTailBytes = 1 << 16;
  std::ifstream file(run_dir + "/events.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return 1;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  int64_t last = 0;
  for (std::string line; std::getline(file, line);) {
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("attempt") || !record["attempt"].is_number_integer())
      continue;
    last = record["attempt"].get<int64_t>();
  }
  return last + 1;
}

double now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) / 1e6;
}

}  // namespace tycho
