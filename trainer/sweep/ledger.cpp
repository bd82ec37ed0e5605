// Appends and reads lines.
#include "trainer/sweep/ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"

namespace tycho {
namespace {

constexpr std::string_view kSum = ",\"sum\":\"";
constexpr size_t kSumDigits = 8, kTailBytes = kSum.size() + kSumDigits + 2;

double now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) / 1e3;
}

struct FileState {
  uint64_t inode = 0;  // 0: no file
  int64_t num_bytes = 0;
};

FileState state_of(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) < 0) return {};
  return {info.st_ino, info.st_size};
}

bool ends_in_newline(const std::string& path, int64_t num_bytes) {
  if (num_bytes == 0) return true;
  char last = 0;
  read_exactly(path, num_bytes - 1, &last, 1);
  return last == '\n';
}

}  // namespace

std::string ledger_line(const Json& fact) {
  std::string text = fact.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();  // the brace
  const std::string sum = hash_hex(text).substr(0, kSumDigits);
  return fmt::format("{}{}{}\"}}", text, kSum, sum);
}

Json read_ledger_line(std::string_view line) {
  if (line.size() < kTailBytes + 2 || line.substr(line.size() - kTailBytes, kSum.size()) != kSum) return {};
  const std::string_view text = line.substr(0, line.size() - kTailBytes);
  if (hash_hex(text).substr(0, kSumDigits) != line.substr(line.size() - kSumDigits - 2, kSumDigits))
    return {};
  Json fact = Json::parse(line, nullptr, false);
  if (!fact.is_object() || !fact.contains("type") || !fact["type"].is_string()) return {};
  return fact;
}

Ledger::Ledger(FileOps& files, const std::string& sweep_dir)
    : files_(files), path_(sweep_dir + "/ledger.jsonl") {}

void Ledger::append(Json fact, bool durable) {
  fact["time"] = now_s();
  append_text(ledger_line(fact) + "\n", durable);
}

// One write, so that lines of two workers do not mix; a torn line of one that was killed is ended first.
void Ledger::append_text(const std::string& lines, bool durable) {
  while (true) {
    const FileState before = state_of(path_);
    const std::unique_ptr<OutputFile> file = files_.append(path_);
    const std::string text = (ends_in_newline(path_, before.num_bytes) ? "" : "\n") + lines;
    file->write(text.data(), text.size());
    if (durable) file->sync();
    file->close();
    // A compaction that began in between carries over what the old file got before it looked again; what came
    // later is ours to repeat.
    if (before.inode == 0 || state_of(path_).inode == before.inode) return;
  }
}

Ledger::News Ledger::read_new() {
  News news;
  const FileState now = state_of(path_);
  if (now.inode != inode_ || now.num_bytes < offset_) {
    news.restarted = inode_ != 0;
    inode_ = now.inode, offset_ = 0, damaged_ = 0;
  }
  if (now.num_bytes == offset_) return news;
  std::string text(static_cast<size_t>(now.num_bytes - offset_), '\0');
  read_exactly(path_, offset_, text.data(), text.size());
  size_t begin = 0;
  // The last line may still be on its way.
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end == begin) continue;
    Json fact = read_ledger_line(std::string_view(text).substr(begin, end - begin));
    if (fact.is_null())
      ++damaged_;
    else
      news.facts.push_back(std::move(fact));
  }
  offset_ += static_cast<int64_t>(begin);
  return news;
}

void Ledger::compact(const std::vector<Json>& facts) {
  const int old_file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  const int64_t read_to = offset_;
  if (old_file < 0) return;
  std::string lines;
  for (const Json& fact : facts) {
    Json kept = fact;
    kept.erase("sum");
    lines += ledger_line(kept) + "\n";
  }
  std::string late;
  try {
    write_file_atomically(files_, path_, lines);
    struct stat info = {};
    if (::fstat(old_file, &info) == 0 && info.st_size > read_to) {
      late.resize(static_cast<size_t>(info.st_size - read_to));
      const ssize_t n = ::pread(old_file, late.data(), late.size(), read_to);
      late.resize(n > 0 ? static_cast<size_t>(n) : 0);
    }
  } catch (const Error&) {
    ::close(old_file);
    throw;
  }
  ::close(old_file);
  if (!late.empty()) append_text(late + "\n", /*durable=*/true);
}

}  // namespace tycho
