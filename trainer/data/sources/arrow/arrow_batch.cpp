// Columns and their children come depth first; the schema alone says how many buffers each has.
#include "trainer/data/sources/arrow/arrow_batch.h"

#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kVersion5 = 4;  // since Arrow 1.0

/// A pair of numbers: length and nulls of a node, or place and length of a buffer.
std::pair<int64_t, int64_t> take_pair(std::string_view& pairs, const char* what) {
  std::pair<int64_t, int64_t> pair;
  constexpr size_t kBytes = 2 * sizeof(int64_t);
  if (pairs.size() < kBytes) fail(ExitCode::kUnusable, "[arrow] a batch has too few {}", what);
  std::memcpy(&pair.first, pairs.data(), sizeof pair.first);
  std::memcpy(&pair.second, pairs.data() + sizeof pair.first, sizeof pair.second);
  pairs.remove_prefix(kBytes);
  if (pair.first < 0 || pair.second < 0) fail(ExitCode::kUnusable, "[arrow] a batch has negative {}", what);
  return pair;
}

ArrowCodec codec_of(const FlatTable& batch) {
  const auto compression = batch.table(3);
  if (!compression) return ArrowCodec::kNone;
  const int codec = compression->scalar<int8_t>(0, 0);
  if (codec != 0 && codec != 1) fail(ExitCode::kUnusable, "[arrow] a batch has compression {}", codec);
  return codec == 0 ? ArrowCodec::kLz4Frame : ArrowCodec::kZstd;
}

}  // namespace

ArrowBatch::ArrowBatch(const FlatTable& batch, int version, std::shared_ptr<const std::string> path,
                       int64_t body_begin, int64_t body_bytes)
    : version_(version),
      path_(std::move(path)),
      body_begin_(body_begin),
      body_bytes_(body_bytes),
      num_rows_(batch.scalar<int64_t>(0, 0)),
      nodes_(batch.items(1, 2 * sizeof(int64_t))),
      buffers_(batch.items(2, 2 * sizeof(int64_t))),
      block_counts_(batch.items(4, sizeof(int64_t))),
      codec_(codec_of(batch)) {
  if (num_rows_ < 0) fail(ExitCode::kUnusable, "[arrow] a batch has {} rows", num_rows_);
}

ArrowBuffer ArrowBatch::take_buffer(bool is_wanted) {
  const auto [begin, bytes] = take_pair(buffers_, "buffers");
  if (begin > body_bytes_ || bytes > body_bytes_ - begin)
    fail(ExitCode::kUnusable, "[arrow] a buffer is outside its batch");
  ArrowBuffer buffer(path_, body_begin_ + begin, bytes);
  if (is_wanted) buffer.decompress(codec_);
  return buffer;
}

void ArrowBatch::take_buffers(ArrowColumn& column, bool is_wanted) {
  const ArrowField& field = *column.field;
  const ArrowKind kind = field.dictionary ? ArrowKind::kWhole : field.kind;
  if (kind == ArrowKind::kNull || kind == ArrowKind::kOtherRuns) return;
  if (kind != ArrowKind::kOtherUnion || version_ < kVersion5) column.validity = take_buffer(is_wanted);
  if (kind == ArrowKind::kStruct || kind == ArrowKind::kFixedList) return;
  if (kind == ArrowKind::kBytes || kind == ArrowKind::kList || kind == ArrowKind::kListView)
    column.offsets = take_buffer(is_wanted);
  if (kind == ArrowKind::kListView) column.sizes = take_buffer(is_wanted);
  if (kind == ArrowKind::kList || kind == ArrowKind::kListView) return;
  column.data = take_buffer(is_wanted);
  if (kind == ArrowKind::kOtherUnion && field.is_dense) take_buffer(is_wanted);
  if (kind != ArrowKind::kViews) return;
  int64_t count = 0;
  if (block_counts_.size() < sizeof count)
    fail(ExitCode::kUnusable, "[arrow] a batch has too few counts of buffers");
  std::memcpy(&count, block_counts_.data(), sizeof count);
  block_counts_.remove_prefix(sizeof count);
  for (int64_t i = 0; i < count; ++i) column.blocks.push_back(take_buffer(is_wanted));
}

ArrowColumn ArrowBatch::take(const ArrowField& field, bool is_wanted) {
  ArrowColumn column{.field = &field};
  const auto [length, num_nulls] = take_pair(nodes_, "columns");
  column.length = length;
  column.has_nulls = num_nulls > 0;
  take_buffers(column, is_wanted);
  if (!field.dictionary)
    for (const ArrowField& child : field.children) column.children.push_back(take(child, is_wanted));
  return column;
}

}  // namespace tycho
