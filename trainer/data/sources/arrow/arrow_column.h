// Values of a column in one batch of an Arrow file.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/data/sources/arrow/arrow_buffer.h"
#include "trainer/data/sources/arrow/arrow_schema.h"

namespace tycho {

/// Owned by one thread; the field must outlive it. Throws Error (kUnusable) "[arrow] ..." for damaged data.
struct ArrowColumn {
  const ArrowField* field = nullptr;
  int64_t length = 0;
  bool has_nulls = false;
  ArrowBuffer validity, offsets, sizes, data;  // kViews: data has the views
  std::vector<ArrowBuffer> blocks;             // of kViews
  std::vector<ArrowColumn> children;
  /// Parts of the dictionary, each with the index of its first value.
  std::shared_ptr<std::vector<ArrowColumn>> dictionary;

  bool is_null(int64_t i);
  /// Returns the text or bytes of value `i`, which is not null, up to `most_bytes`; valid until the next
  /// call. Requires kBytes or kViews.
  std::string_view text(int64_t i, int64_t most_bytes);
};

/// Rest of the values and bytes that one row may have.
struct ArrowRoom {
  int64_t values, bytes;
};
/// Room of a row: as many values and bytes as a row may have.
ArrowRoom row_room();

/// Returns value `i` as JSON; members of structs that are null are left out.
Json arrow_value(ArrowColumn& column, int64_t i, ArrowRoom& room);
/// Returns the text of value `i`; nothing if it is null.
std::optional<std::string_view> arrow_text(ArrowColumn& column, int64_t i, ArrowRoom& room);

}  // namespace tycho
