// Kinds of files by the endings of their names, as the library `datasets` tells them apart.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Returns the kind that most files have: "parquet", "arrow", "json", "csv", "text", or the name of a kind
/// that is not read, such as "webdataset" for .tar; "" if no ending is known.
std::string main_kind(const std::vector<std::string>& files);
/// True if a path has an ending of this kind, as in a.json, a.json.gz.
bool is_of_kind(const std::string& path, const std::string& kind);
/// True if a name has an ending of any kind of data.
bool is_data_by_name(const std::string& path);

}  // namespace tycho
