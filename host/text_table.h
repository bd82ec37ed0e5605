// Plain aligned tables for the terminal and for pipes.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Formats rows of cells as lines. Columns are padded to their widest cell, numbers aligned to the right. The
/// first row is the header.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tycho
