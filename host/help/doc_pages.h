// The pages of docs/ as text inside the binary; cmake/EmbedText.cmake writes the source.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

struct DocPage {
  const char* name;       // "parallel/sharding.md"
  const char* file;       // "docs/parallel/sharding.md"
  std::string_view text;  // static
};

const std::vector<DocPage>& doc_pages();

/// Returns "parallel/sharding" of a page.
std::string topic_of(const DocPage& page);

/// Returns the page of a topic, or nullptr. "sharding" and "parallel sharding" both name parallel/sharding.
const DocPage* find_page(const std::string& topic);

/// Returns the names of all topics, in alphabetical order.
std::vector<std::string> all_topics();

}  // namespace tycho
