// Appends and reads lines.
#include "trainer/sweep/ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

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

/// An open ledger file, which a compaction replaces by another one. While it is open, no other file gets its
/// inode.
class SeenFile {
 public:
  explicit SeenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info = {};
    if (fd_ < 0 || ::fstat(fd_, &info) < 0) return;
    inode_ = info.st_ino, num_bytes_ = info.st_size;
  }
  SeenFile(const SeenFile&) = delete;
  SeenFile& operator=(const SeenFile&) = delete;
  ~SeenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  uint64_t inode() const { return inode_; }  // 0: no file
  int64_t num_bytes() const { return num_bytes_; }

  std::string read_from(int64_t offset) const {
    std::string text(static_cast<size_t>(num_bytes_ - offset), '\0');
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t n =
          ::pread(fd_, text.data() + done, text.size() - done, offset + static_cast<int64_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(ExitCode::kStorage, "[sweep] cannot read the ledger: {}", std::strerror(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    text.resize(done);
    return text;
  }
  /// Reads from an offset, including what was appended since the file was opened.
  std::string read_later(int64_t offset) {
    struct stat info = {};
    if (::fstat(fd_, &info) == 0) num_bytes_ = info.st_size;
    return num_bytes_ > offset ? read_from(offset) : "";
  }
  bool ends_in_newline() const { return num_bytes_ == 0 || read_from(num_bytes_ - 1) == "\n"; }

 private:
  int fd_;
  uint64_t inode_ = 0;
  int64_t num_bytes_ = 0;
};

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
    const SeenFile before(path_);
    const std::unique_ptr<OutputFile> file = files_.append(path_);
    const std::string text = (before.ends_in_newline() ? "" : "\n") + lines;
    file->write(text.data(), text.size());
    if (durable) file->sync();
    file->close();
    // A compaction that began in between carries over what the old file got before it looked again; what came
    // later is ours to repeat.
    if (before.inode() == 0 || SeenFile(path_).inode() == before.inode()) return;
  }
}

Ledger::News Ledger::read_new() {
  News news;
  const auto now = std::make_shared<const SeenFile>(path_);
  if (now->inode() != inode_ || now->num_bytes() < offset_) {
    news.restarted = inode_ != 0;
    inode_ = now->inode(), offset_ = 0, damaged_ = 0;
  }
  current_ = now;
  if (now->num_bytes() == offset_) return news;
  const std::string text = now->read_from(offset_);
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
  SeenFile old(path_);
  if (old.inode() == 0) return;
  if (old.inode() != inode_) return;  // somebody else was faster
  const int64_t read_to = offset_;
  std::string lines;
  for (const Json& fact : facts) {
    Json kept = fact;
    kept.erase("sum");
    lines += ledger_line(kept) + "\n";
  }
  write_file_atomically(files_, path_, lines);
  const std::string late = old.read_later(read_to);
  if (!late.empty()) append_text(late + "\n", /*durable=*/true);
}

}  // namespace tycho
