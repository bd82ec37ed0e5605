// Styles and scripts of pages as text inside the binary; cmake/EmbedText.cmake writes the source.
#pragma once
#include <string_view>
#include <vector>

namespace tycho {

struct PageFile {
  const char* name;       // "plots.js"
  const char* file;       // "trainer/report/page/plots.js"
  std::string_view text;  // static
};

const std::vector<PageFile>& page_files();

}  // namespace tycho
