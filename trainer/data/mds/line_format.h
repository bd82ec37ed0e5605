// Samples as lines of text: shards of mosaicml-streaming's formats json, xsv, csv and tsv.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/mds/mds_format.h"

namespace tycho {

/// Format of the lines of a shard. A second file, with the ending .meta, holds the offset of each line.
struct LineFormat {
  bool is_json = false;            // an object with a value for each column
  std::string separator, newline;  // else values between separators; nothing is quoted or escaped
  bool operator==(const LineFormat&) const = default;
};

/// Returns the MDS encoding of a column of such a shard: "str" stays "str"; "int" becomes str_int and "float"
/// str_float, because Python's whole numbers have any length. Throws Error (kUnusable) for others, naming the
/// column.
std::string encoding_of_line_value(const MdsColumn& column);

/// Splits the line of one sample into values of these columns (see encoding_of_line_value), in order. A whole
/// number in JSON has at most 64 bits. Throws Error (kUnusable) that names `place` for a line that does not
/// end with the newline, is not JSON, lacks a column or has a value of another kind, and for text that is not
/// UTF-8.
std::vector<std::string> split_line(const LineFormat& format, const std::vector<MdsColumn>& columns,
                                    std::string_view line, const std::string& place);

}  // namespace tycho
