// Plain aligned tables for the terminal and for pipes.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Rows of cells as lines; columns are padded to their widest cell, numbers to the right. The first row is
/// the header.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tycho
