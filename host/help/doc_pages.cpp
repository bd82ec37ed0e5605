// A topic is the path of its page in docs/, without the ending.
#include "host/help/doc_pages.h"

#include <algorithm>

namespace tycho {

std::string topic_of(const DocPage& page) {
  const std::string_view name = page.name;
  return std::string(name.substr(0, name.rfind(".md")));
}

const DocPage* find_page(const std::string& topic) {
  std::string path = topic;
  std::replace(path.begin(), path.end(), ' ', '/');
  if (path.starts_with("docs/")) path.erase(0, 5);
  if (path.ends_with(".md")) path.resize(path.size() - 3);
  for (const DocPage& page : doc_pages())
    if (topic_of(page) == path) return &page;
  const DocPage* found = nullptr;
  for (const DocPage& page : doc_pages()) {
    if (!topic_of(page).ends_with("/" + path)) continue;
    if (found != nullptr) return nullptr;  // two folders have such a page
    found = &page;
  }
  return found;
}

std::vector<std::string> all_topics() {
  std::vector<std::string> topics;
  for (const DocPage& page : doc_pages()) topics.push_back(topic_of(page));
  std::sort(topics.begin(), topics.end());
  return topics;
}

}  // namespace tycho
