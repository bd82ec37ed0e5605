// Splits of a data set while they are written, and what every conversion says about them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {

/// Where samples go and how shards are written.
struct SplitRules {
  std::string out_dir;  // the data set: <out_dir>/<split>/index.json
  std::string split = "train", val_split = "val";
  double val_fraction = 0;          // in [0, 1): share of the documents (every k-th) that goes to val_split
  int64_t size_limit = 64 << 20;    // bytes per shard
  std::vector<std::string> hashes;  // that index.json records of every file: of shard_hash_names()
  std::string compression;          // of shards: parse_compression's names; "": none

  /// Every how many documents one goes to the validation split; 0: none does.
  int64_t validation_period() const;
  /// Where document `number` (from 0) goes: 0 for `split`, 1 for `val_split`.
  size_t split_of(int64_t number) const;
  /// `split`, and `val_split` where there is one.
  std::vector<std::string> names() const;
};

/// Throws Error (kUsage) for rules that make no sense.
void check_splits(const SplitRules& rules);
/// Throws Error (kUsage) for a split that is already there.
void check_free(const SplitRules& rules);
/// The data set gets a copy of its tokenizer. Throws Error (kUsage) when it has another one already.
void keep_tokenizer(FileOps& files, const std::string& out_dir, const std::string& tokenizer);

/// In the name of a folder in which a process writes a split, before the number of the process.
inline constexpr std::string_view kPartial = ".partial-";
/// Whether a process, this one included, writes into that folder.
bool is_folder_in_use(const std::string& dir);
/// The folder in which this process writes a split.
std::string work_folder_of(const SplitRules& rules, const std::string& split);
/// Where a killed conversion has left folders of all the splits that `rules` name, and `fits` accepts that
/// of the first, gives them the names of this process's. Nothing is done where there are none.
bool adopt_left_over(FileOps& files, const SplitRules& rules,
                     const std::function<bool(const std::string& dir)>& fits);

/// One split, in a temporary folder beside its place, which it removes unless keep() was called. Owned by one
/// thread. Throws Error (kStorage) for failing writes.
class SplitWriter {
 public:
  SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split,
              std::vector<MdsColumn> columns);
  /// Continues in the work folder, which must be there.
  SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split,
              std::vector<MdsColumn> columns, MdsWriter::State state);
  ~SplitWriter();
  SplitWriter(const SplitWriter&) = delete;

  /// As MdsWriter::write.
  void write(const std::vector<std::string>& values) { writer_->write(values); }
  /// Completes the files, and writes the note with the number and the hashes of the shards.
  void finish(ConversionNote note);
  /// The folder stays.
  void keep() { keeps_ = true; }

  const std::string& dir() const { return final_dir_; }
  const std::string& work_dir() const { return work_dir_; }
  const MdsWriter::State& state() const { return writer_->state(); }
  int64_t num_samples() const { return writer_->num_samples(); }
  int64_t num_shards() const { return writer_->num_shards(); }

 private:
  SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split);
  void open(const SplitRules& rules, std::vector<MdsColumn> columns);

  FileOps& files_;
  std::string final_dir_, work_dir_;
  int lock_ = -1;  // of the folder: it is in use
  bool keeps_ = false;
  std::optional<MdsWriter> writer_;
};

}  // namespace tycho
