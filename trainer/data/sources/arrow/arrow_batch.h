// Finds the buffers of the columns of a record batch.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/sources/arrow/arrow_buffer.h"
#include "trainer/data/sources/arrow/arrow_column.h"
#include "trainer/data/sources/arrow/arrow_schema.h"
#include "trainer/data/sources/arrow/flatbuffer.h"

namespace tycho {

/// Takes columns in the order of the schema. The batch's header must outlive this object. Throws Error
/// (kUnusable) "[arrow] ..." for damaged headers and places outside the body.
class ArrowBatch {
 public:
  /// `batch`: header of the record batch. `version`: that of its message. The body is at `body_begin` in the
  /// file.
  ArrowBatch(const FlatTable& batch, int version, std::shared_ptr<const std::string> path, int64_t body_begin,
             int64_t body_bytes);

  int64_t num_rows() const { return num_rows_; }
  /// Returns the next column, with its children but without dictionaries. Decompresses it only if
  /// `is_wanted`.
  ArrowColumn take(const ArrowField& field, bool is_wanted);

 private:
  void take_buffers(ArrowColumn& column, bool is_wanted);
  ArrowBuffer take_buffer(bool is_wanted);

  int version_;
  std::shared_ptr<const std::string> path_;
  int64_t body_begin_, body_bytes_, num_rows_;
  std::string_view nodes_, buffers_, block_counts_;  // what is left of them
  ArrowCodec codec_ = ArrowCodec::kNone;
};

}  // namespace tycho
