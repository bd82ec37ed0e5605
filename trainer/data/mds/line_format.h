// Samples as lines of text: shards of mosaicml-streaming's formats json, xsv, csv and tsv.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/mds/mds_format.h"

namespace tycho {

/// How the lines of a shard are written. A second file, with the ending .meta, says where each begins.
struct LineFormat {
  bool is_json = false;            // an object with a value for each column
  std::string separator, newline;  // else values between separators; nothing is quoted or escaped
  bool operator==(const LineFormat&) const = default;
};

/// The encoding in MDS of a column of such a shard: "str" is itself; "int" is str_int and "float" is
/// str_float, because Python's whole numbers have any length. Throws Error (kUnusable) for others, naming the
/// column.
std::string encoding_of_line_value(const MdsColumn& column);

/// The values of one sample as values of these columns (encodings as above), in their order. A whole number
/// in JSON has at most 64 bits. Throws Error (kUnusable) that names `place` for a line that does not end with
/// the newline, is not JSON, lacks a column or has a value of another kind, and for text that is not UTF-8.
std::vector<std::string> split_line(const LineFormat& format, const std::vector<MdsColumn>& columns,
                                    std::string_view line, const std::string& place);

}  // namespace tycho
