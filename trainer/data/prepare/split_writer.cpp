// A split gets its final name when it is complete, so that an interrupted conversion leaves no split that
// looks whole.
#include "trainer/data/prepare/split_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/storage/compression.h"
#include "trainer/data/tokenizer/special_tokens.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> sorted_names(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Returns a descriptor that holds the lock of a folder until it is closed, or until its process ends.
/// Returns -1 if another process has the lock, or the file system has no locks.
int lock_folder(const std::string& dir) {
  const int folder = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || ::flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  ::close(folder);
  return -1;
}

}  // namespace

int64_t SplitRules::validation_period() const {
  if (val_fraction == 0) return 0;
  return std::max<int64_t>(2, std::llround(1 / val_fraction));
}

size_t SplitRules::split_of(int64_t number) const {
  const int64_t period = validation_period();
  return period > 0 && number % period == period - 1 ? 1 : 0;
}

std::vector<std::string> SplitRules::names() const {
  std::vector<std::string> names = {split};
  if (validation_period() > 0) names.push_back(val_split);
  return names;
}

void check_splits(const SplitRules& rules) {
  const auto refuse = [](const std::string& what) { fail(ExitCode::kUsage, "[data] {}", what); };
  if (rules.out_dir.empty()) refuse("name a folder for the data set");
  for (const std::string& name : rules.hashes)
    if (shard_hash_digits(name) == 0)
      refuse(fmt::format("index.json can record the checksums {}, not {}",
                         fmt::join(shard_hash_names(), ", "), name));
  if (!rules.compression.empty()) parse_compression(rules.compression, "[data] --compression");
  if (!(rules.val_fraction >= 0 && rules.val_fraction < 1))
    refuse(fmt::format("val_fraction must be from 0 to less than 1, got {}", rules.val_fraction));
  for (const std::string& split : {rules.split, rules.val_split})
    if (split.empty() || split[0] == '.' || split.find('/') != std::string::npos)
      refuse(fmt::format("\"{}\" is not a valid split name", split));
  if (rules.split == rules.val_split && rules.val_fraction > 0)
    refuse("the split and the validation split need different names");
}

void check_free(const SplitRules& rules) {
  std::error_code error;
  for (const std::string& name : rules.names()) {
    const std::string dir = rules.out_dir + "/" + name;
    if (fs::exists(dir, error) && !fs::is_empty(dir, error))
      fail(ExitCode::kUsage, "[data] {} is already there; choose another folder or split, or delete it first",
           dir);
  }
}

void keep_tokenizer(FileOps& files, const std::string& out_dir, const std::string& tokenizer) {
  const std::string text = read_tokenizer_file(tokenizer);
  const std::string path = out_dir + "/" + tokenizer_file_name(text);
  std::error_code error;
  if (!fs::exists(path, error)) {
    for (const auto& [name, beside] : read_files_beside_tokenizer(tokenizer))
      write_file_atomically(files, out_dir + "/" + name, beside);
    return write_file_atomically(files, path, text);
  }
  if (read_file(path) != text) {
    fail(ExitCode::kUsage,
         "[data] {} is a different tokenizer than {}; use the existing one, or another folder for the data "
         "set",
         path, tokenizer);
  }
}

bool is_folder_in_use(const std::string& dir) {
  const int lock = lock_folder(dir);
  if (lock >= 0) ::close(lock);
  return lock < 0;
}

std::string work_folder_of(const SplitRules& rules, const std::string& split) {
  return fmt::format("{}/.{}{}{}", rules.out_dir, split, kPartial, ::getpid());
}

std::string passing_folder_of(const std::string& out_dir) {
  return fmt::format("{}/.hub-files{}{}", out_dir, kPartial, ::getpid());
}

bool adopt_left_over(FileOps& files, const SplitRules& rules,
                     const std::function<bool(const std::string& dir)>& fits) {
  const std::vector<std::string> splits = rules.names();
  const std::string prefix = fmt::format(".{}{}", rules.split, kPartial);
  std::error_code error;
  for (fs::directory_iterator it(rules.out_dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with(prefix)) continue;
    const auto folder_of = [&](const std::string& split) {
      return fmt::format("{}/.{}{}{}", rules.out_dir, split, kPartial, name.substr(prefix.size()));
    };
    const bool left_over = !is_folder_in_use(it->path());
    const bool has_all = std::all_of(splits.begin(), splits.end(), [&](const std::string& split) {
      return fs::is_directory(folder_of(split), error);
    });
    if (!left_over || !has_all || !fits(it->path())) continue;
    for (const std::string& split : splits)
      if (folder_of(split) != work_folder_of(rules, split))
        files.rename(folder_of(split), work_folder_of(rules, split));
    return true;
  }
  return false;
}

SplitWriter::SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split)
    : files_(files), final_dir_(rules.out_dir + "/" + split), work_dir_(work_folder_of(rules, split)) {}

SplitWriter::SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split,
                         std::vector<MdsColumn> columns)
    : SplitWriter(files, rules, split) {
  std::error_code error;
  fs::remove_all(work_dir_, error);  // only an earlier process of the same number can have left it
  files.make_dir(work_dir_);
  open(rules, std::move(columns));
}

SplitWriter::SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split,
                         std::vector<MdsColumn> columns, MdsWriter::State state)
    : SplitWriter(files, rules, split) {
  // Shards that the state does not know yet are written again; other files are incomplete shards.
  std::set<std::string> known = {kConversionState};
  for (const Json& shard : state.shards)
    for (const char* key : {"raw_data", "zip_data"})
      if (!shard.at(key).is_null()) known.insert(shard.at(key).at("basename"));
  std::vector<std::string> newer;
  for (const auto& file : fs::directory_iterator(work_dir_))
    if (!known.contains(file.path().filename())) newer.push_back(file.path());
  for (const std::string& path : newer) files.remove_file(path);
  open(rules, std::move(columns));
  writer_->restore(std::move(state));
}

void SplitWriter::open(const SplitRules& rules, std::vector<MdsColumn> columns) {
  lock_ = lock_folder(work_dir_);
  writer_.emplace(files_, work_dir_,
                  MdsWriterOptions{.columns = std::move(columns),
                                   .size_limit = rules.size_limit,
                                   .hashes = sorted_names(rules.hashes),
                                   .compression = rules.compression});
}

SplitWriter::~SplitWriter() {
  std::error_code error;
  if (!keeps_) fs::remove_all(work_dir_, error);
  if (lock_ >= 0) ::close(lock_);
}

void SplitWriter::finish(ConversionNote note) {
  writer_->finish();
  note.samples = writer_->num_samples();
  const auto& hashes = writer_->state().shard_hashes;
  note.shards = {hashes.begin(), hashes.end()};
  write_conversion_note(files_, work_dir_, note);
  files_.sync_dir(work_dir_);
}

}  // namespace tycho
