// Downloads go to memory first: a cache that has the files already need not be writable.
#include "trainer/data/mds/cached_index.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/storage/open_remote_files.h"
#include "trainer/data/storage/part_file.h"

namespace tycho {
namespace {

// Limits: an index.json with a million shards and their checksums, and a note of a few lines.
constexpr int64_t kMostIndexBytes = int64_t{256} << 20;
constexpr int64_t kMostNoteBytes = int64_t{1} << 20;

/// Downloads a small file into a string. Returns nothing when the remote has no such file.
std::optional<std::string> download_text(RemoteFiles& files, const std::string& name, int64_t most_bytes,
                                         const CacheSpec& spec, const std::stop_token& stop) {
  const int memory = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (memory < 0) fail(ExitCode::kStorage, "[data] no memory for {}: {}", name, std::strerror(errno));
  DownloadTarget target{memory, name, 0, most_bytes,
                        "that are read of such a file; is the remote the folder of a data set?"};
  std::optional<std::string> text;
  try {
    if (download(files, name, target, spec.policy, stop)) {
      text.emplace(static_cast<size_t>(target.num_bytes), '\0');
      read_exactly(fmt::format("/proc/self/fd/{}", memory), 0, text->data(), text->size());
    }
  } catch (...) {
    ::close(memory);
    throw;
  }
  ::close(memory);
  return text;
}

void fail_changed(const std::string& remote, const std::string& cached) {
  fail(ExitCode::kUnusable,
       "[data] {} and {} differ: the remote has changed, or the cache is another data set's. Choose another "
       "local_dir, or delete that folder to fetch the data again",
       remote, cached);
}

void compare_or_write(const RemoteFiles& files, const std::string& name, const std::string& text,
                      const CacheSpec& spec, const std::stop_token& stop) {
  const std::string path = spec.dir + "/" + name;
  const auto compare = [&] {
    if (read_file(path) != text) fail_changed(files.place_of(name), path);
  };
  const auto is_there = [&] { return ::access(path.c_str(), F_OK) == 0; };
  if (is_there()) return compare();
  make_dirs(real_files(), work_folder(spec.dir));
  std::optional<PartFile> part =
      PartFile::claim(work_folder(spec.dir) + "/" + name + ".part", is_there, stop, spec.advice);
  if (!part) return compare();
  part->cut(0);
  part->write(text.data(), text.size());
  part->publish(path);
}

/// Throws Error if the cache is the remote's own folder, whose files eviction would delete.
void check_not_itself(const CacheSpec& spec) {
  const RemoteUri place = parse_remote(spec.remote);
  struct stat remote {
  }, cache{};
  if (place.kind == RemoteUri::Kind::kFolder && ::stat(place.folder.c_str(), &remote) == 0 &&
      ::stat(spec.dir.c_str(), &cache) == 0 && remote.st_ino == cache.st_ino && remote.st_dev == cache.st_dev)
    fail(ExitCode::kUnusable, "[data] remote and local_dir are the same folder, {}: leave remote out",
         spec.dir);
}

}  // namespace

CacheSpec cache_spec(const MdsConfig& stream) {
  CacheSpec spec;
  spec.remote = parse_remote(stream.remote).below(stream.split).text;
  spec.dir = stream.dir();
  spec.sas_env = stream.remote_sas_env;
  spec.policy = {stream.download_retry, stream.download_timeout_s};
  if (stream.cache_limit) spec.limit_bytes = stream.cache_limit->value;
  spec.keep_zip = stream.keep_zip;
  return spec;
}

std::string work_folder(const std::string& cache_dir) { return cache_dir + "/" + kCacheWorkFolder; }

void fetch_index(const CacheSpec& spec, const std::stop_token& stop) {
  check_not_itself(spec);
  const std::unique_ptr<RemoteFiles> files = open_remote_files(parse_remote(spec.remote), spec.sas_env);
  const std::optional<std::string> index = download_text(*files, "index.json", kMostIndexBytes, spec, stop);
  if (!index)
    fail(ExitCode::kUnusable,
         "[data] {} does not exist: is the remote the folder of a data set, and split one of its folders?",
         files->place_of("index.json"));
  std::optional<std::string> note;
  try {
    note = download_text(*files, "tycho.json", kMostNoteBytes, spec, stop);
  } catch (const Error& error) {
    // For a missing file, S3 answers 403 to users who may not list the bucket. Few data sets have this file.
    if (error.code() != ExitCode::kUnusable ||
        std::string_view(error.what()).find("answers 403") == std::string_view::npos)
      throw;
  }
  // Writes the note first, because readers of the index take its checksums from the note.
  if (note) compare_or_write(*files, "tycho.json", *note, spec, stop);
  compare_or_write(*files, "index.json", *index, spec, stop);
}

void fetch_index_once(const CacheSpec& spec) {
  static std::mutex mutex;
  static std::set<std::pair<std::string, std::string>> fetched;
  const std::lock_guard lock(mutex);
  if (fetched.contains({spec.remote, spec.dir}) && ::access((spec.dir + "/index.json").c_str(), F_OK) == 0)
    return;
  fetch_index(spec);
  fetched.emplace(spec.remote, spec.dir);
}

void fetch_indexes(const DataConfig& data) {
  const auto* mds = std::get_if<MdsConfig>(&data.value);
  if (mds == nullptr) return;
  for (const MdsConfig& stream : mds->each_stream())
    if (!stream.remote.empty()) fetch_index_once(cache_spec(stream));
}

void check_made_with(const DataConfig& data, const std::string& tokenizer_hash, const std::string& place) {
  const auto* mds = std::get_if<MdsConfig>(&data.value);
  if (mds == nullptr) return;
  fetch_indexes(data);
  for (const MdsConfig& stream : mds->each_stream()) check_tokenizer(stream.dir(), tokenizer_hash, place);
}

}  // namespace tycho
