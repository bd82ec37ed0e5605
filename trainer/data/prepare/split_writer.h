// Splits of a data set while they are written, with the options that all conversions share.
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

/// Folders and names of the splits, and the form of their shards.
struct SplitRules {
  std::string out_dir;  // the data set: <out_dir>/<split>/index.json
  std::string split = "train", val_split = "val";
  double val_fraction = 0;          // in [0, 1): share of the documents (every k-th) that goes to val_split
  int64_t size_limit = 64 << 20;    // bytes per shard
  std::vector<std::string> hashes;  // checksums of every file in index.json: names of shard_hash_names()
  std::string compression;          // compression of shards: a name of parse_compression; "": none

  /// Returns k if every k-th document goes to the validation split; 0 if none does.
  int64_t validation_period() const;
  /// Returns the index in names() of the split that document `number` (from 0) goes to.
  size_t split_of(int64_t number) const;
  /// Returns `split`, and `val_split` if there is one.
  std::vector<std::string> names() const;
};

/// Throws Error (kUsage) for rules that make no sense.
void check_splits(const SplitRules& rules);
/// Throws Error (kUsage) for a split that already exists.
void check_free(const SplitRules& rules);
/// Copies the tokenizer into the data set. Throws Error (kUsage) when the data set has a different one
/// already.
void keep_tokenizer(FileOps& files, const std::string& out_dir, const std::string& tokenizer);

/// Infix of the name of a work folder; the number of the process that writes the split follows.
inline constexpr std::string_view kPartial = ".partial-";
/// Name of the file that holds a conversion's state, in the work folder of the first split.
inline constexpr const char* kConversionState = ".resume";

/// True if a process, this one included, writes into that folder.
bool is_folder_in_use(const std::string& dir);
/// Returns the folder in which this process writes a split.
std::string work_folder_of(const SplitRules& rules, const std::string& split);
/// Returns the folder for files of the hub while this process reads them. sweep_leftovers removes those of
/// killed processes.
std::string passing_folder_of(const std::string& out_dir);
/// Renames the work folders of a killed conversion to those of this process, if it left one for each split
/// that `rules` name and `fits` accepts the first. Returns false if there are none.
bool adopt_left_over(FileOps& files, const SplitRules& rules,
                     const std::function<bool(const std::string& dir)>& fits);

/// Writes one split into a temporary folder next to the final one; removes it unless keep() was called. Owned
/// by one thread. Throws Error (kStorage) for failing writes.
class SplitWriter {
 public:
  SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split,
              std::vector<MdsColumn> columns);
  /// Continues in the work folder, which must exist.
  SplitWriter(FileOps& files, const SplitRules& rules, const std::string& split,
              std::vector<MdsColumn> columns, MdsWriter::State state);
  ~SplitWriter();
  SplitWriter(const SplitWriter&) = delete;

  /// See MdsWriter::write.
  void write(const std::vector<std::string>& values) { writer_->write(values); }
  /// Completes the files, and writes the note with the number and the hashes of the shards.
  void finish(ConversionNote note);
  /// Keeps the folder when this object is destroyed.
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
  int lock_ = -1;  // lock of the folder, which marks it as in use
  bool keeps_ = false;
  std::optional<MdsWriter> writer_;
};

}  // namespace tycho
