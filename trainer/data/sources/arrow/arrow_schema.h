// Columns of an Arrow file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/sources/arrow/flatbuffer.h"

namespace tycho {

/// Layouts of values. Types that share a layout and a meaning share a kind.
enum class ArrowKind {
  kNull,
  kWhole,
  kFloat,
  kBoolean,
  kBytes,      // texts and bytes, with offsets
  kViews,      // texts and bytes, as views of several buffers
  kList,       // also maps, which are lists of pairs
  kListView,   // each list has an offset and a length
  kFixedList,  // each list has list_size items
  kStruct,
  kOtherFixed,  // values of a width that are not read: decimals, times, half floats, bytes of one width
  kOtherUnion,  // not read
  kOtherRuns,   // not read
};

struct ArrowField {
  std::string name, path;  // path: name with the names of its parents, joined by dots
  ArrowKind kind = ArrowKind::kNull;
  int width = 0;                      // bytes of a number
  bool is_signed = false;             // of kWhole
  bool is_large = false;              // offsets have 64 bits
  bool is_text = false;               // of kBytes and kViews: texts, not any bytes
  bool is_dense = false;              // of kOtherUnion
  int64_t list_size = 0;              // of kFixedList
  std::optional<int64_t> dictionary;  // values are indices into the dictionary with this id
  int index_width = 0;                // bytes of an index
  bool index_is_signed = false;
  std::vector<ArrowField> children;
};

/// Word for the values of a column in messages: "texts", "lists".
const char* kind_of_values(const ArrowField& field);

/// Reads a schema as a struct whose children are the columns. Throws Error (kUnusable) "[arrow] ..." for
/// damaged and big-endian ones, and for fields that are nested deeper than 32.
/// (https://github.com/apache/arrow/blob/main/format/Schema.fbs)
ArrowField read_arrow_schema(const FlatTable& schema);

/// Returns the struct member or column with this path ("meta.text"), looking into structs only; nullptr if
/// there is none.
const ArrowField* find_field(const ArrowField& root, const std::string& path);

}  // namespace tycho
