// Tensors of a checkpoint as one row of elements, cut at equal bytes.
#include "trainer/checkpoint/reshard.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/folder_draft.h"
#include "trainer/base/random/random_bytes.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"

namespace tycho {
namespace {

constexpr int kMostFiles = 100'000;  // as many as rank_file_name has digits for

/// Returns a box of a tensor that is read while it is written.
TensorBytes copy_of(const CheckpointReader& from, const TensorBytes& tensor, const Box& box) {
  const int64_t width = safetensors_dtype_bytes(tensor.dtype);
  TensorBytes copy = {tensor.name, tensor.dtype, box.shape, nullptr, volume(box) * width};
  if (box != whole_box(tensor.shape)) copy.global_shape = tensor.shape, copy.offsets = box.offsets;
  copy.fill = [&from, name = tensor.name, box, width](int64_t begin, void* to, int64_t n) {
    char* next = static_cast<char*>(to);
    for (Box part : boxes_of_range(box.shape, begin / width, (begin + n) / width)) {
      for (size_t d = 0; d < part.offsets.size(); ++d) part.offsets[d] += box.offsets[d];
      const int64_t num_bytes = volume(part) * width;
      from.read_box(name, part, next, num_bytes);
      next += num_bytes;
    }
  };
  return copy;
}

/// Returns the tensors of shard `index` of `num_files`: the elements that begin in its part of all bytes.
std::vector<TensorBytes> tensors_of_shard(const CheckpointReader& from, int64_t num_bytes, int index,
                                          int num_files) {
  const auto bound = [&](int i) { return num_bytes / num_files * i + num_bytes % num_files * i / num_files; };
  std::vector<TensorBytes> tensors;
  int64_t at = 0;  // of the tensor, in all bytes
  for (const std::string& name : from.names()) {
    const TensorBytes& tensor = from.describe(name);
    const int64_t width = safetensors_dtype_bytes(tensor.dtype), count = tensor.num_bytes / width;
    const auto element = [&](int64_t byte) {
      return std::clamp((byte - at + width - 1) / width, int64_t{0}, count);
    };
    const int64_t begin = element(std::max(bound(index), at)), end = element(std::max(bound(index + 1), at));
    // A tensor without elements is in the shard where it would begin.
    const bool is_empty_here =
        count == 0 && at >= bound(index) && (at < bound(index + 1) || index == num_files - 1);
    if (is_empty_here || (begin == 0 && end == count && count > 0)) {
      tensors.push_back(copy_of(from, tensor, whole_box(tensor.shape)));
    } else {
      for (const Box& box : boxes_of_range(tensor.shape, begin, end))
        tensors.push_back(copy_of(from, tensor, box));
    }
    at += tensor.num_bytes;
  }
  return tensors;
}

int64_t num_tensor_bytes(const CheckpointReader& reader) {
  int64_t num_bytes = 0;
  for (const std::string& name : reader.names()) num_bytes += reader.describe(name).num_bytes;
  return num_bytes;
}

}  // namespace

CheckpointInfo reshard(const CheckpointReader& from, FileOps& files, const std::string& dir, int num_files) {
  if (num_files < 1 || num_files > kMostFiles)
    fail(ExitCode::kUsage, "[checkpoint] expected 1 to {} files, got {}", kMostFiles, num_files);
  const CheckpointInfo& original = from.info();
  const Manifest manifest = manifest_from_json(original.manifest, original.path);
  CheckpointMeta meta = {.step = original.step,
                         .train_state = manifest.train_state,
                         .recipe = manifest.recipe,
                         .recipe_hash = manifest.recipe_hash,
                         .tag = manifest.tag,
                         .route = manifest.route,
                         .world = manifest.world};
  for (const FileRecord& file : manifest.files)
    if (!file.name.ends_with(".safetensors")) meta.files[file.name] = from.read_text_file(file.name);
  const int64_t num_bytes = num_tensor_bytes(from);
  FolderDraft draft(files, dir);
  CheckpointStore store(files, draft.dir(), /*keep=*/0, original.epoch);
  store.set_copied_from(original);
  std::exception_ptr
      damage;  // damage of the original, which the save would report as a failure of its own disk
  const auto write = [&](const std::string& folder) {
    std::vector<WrittenShard> shards;
    try {
      for (int i = 0; i < num_files; ++i)
        shards.push_back(
            write_shard(files, folder, rank_file_name(i), tensors_of_shard(from, num_bytes, i, num_files)));
    } catch (const Error& error) {
      if (error.code() == ExitCode::kUnusable) damage = std::current_exception();
      throw;
    }
    return shards;
  };
  try {
    CheckpointInfo copy = store.save(meta, num_bytes, write);
    draft.publish();
    copy.path.replace(0, draft.dir().size(), dir);
    return copy;
  } catch (const Error&) {
    if (damage) std::rethrow_exception(damage);
    throw;
  }
}

WrittenShard join_shards(FileOps& files, const std::string& folder, std::vector<WrittenShard> parts,
                         const std::string& name) {
  // What a reader needs of the checkpoint that the parts are not yet.
  Manifest manifest{.uuid = random_hex(16), .world = world_of_one()};
  std::vector<std::string> part_files;
  for (const WrittenShard& part : parts) part_files.push_back(part.file.name);
  add_shards(std::move(parts), manifest);
  const CheckpointReader reader({.path = folder, .manifest = manifest_json(manifest)});
  WrittenShard whole =
      write_shard(files, folder, name, tensors_of_shard(reader, num_tensor_bytes(reader), 0, 1));
  for (const std::string& file : part_files) files.remove_file(folder + "/" + file);
  return whole;
}

}  // namespace tycho
