// Links between pages: the page is there, and so is the heading.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace tycho::house {
namespace {

namespace fs = std::filesystem;

/// As GitHub makes it: letters, digits, '-' and '_' of the heading's text, lower case.
std::string anchor_of(std::string heading) {
  heading = std::regex_replace(heading, std::regex("\\[([^\\]]*)\\]\\([^)]*\\)"), "$1");
  std::string anchor;
  for (const char c : heading) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) || c == '-' || c == '_' || letter >= 0x80) anchor += std::tolower(letter);
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

struct Page {
  std::set<std::string> anchors;
  std::vector<std::string> links;
};

/// Code blocks and `code` hold neither headings nor links.
Page page_of(const std::string& text) {
  static const std::regex heading("^#+ +(.*)$"), code("`[^`]*`"), link("\\]\\(([^)\\s]+)\\)");
  Page page;
  std::map<std::string, int> seen;
  bool inside_code = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) inside_code = !inside_code;
    if (inside_code) continue;
    std::smatch match;
    if (std::regex_match(line, match, heading)) {
      const std::string anchor = anchor_of(match.str(1));
      const int before = seen[anchor]++;
      page.anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
    }
    const std::string prose = std::regex_replace(line, code, "");
    for (std::sregex_iterator it(prose.begin(), prose.end(), link), end; it != end; ++it)
      page.links.push_back(it->str(1));
  }
  return page;
}

/// "page: link" for every link of `pages` (path from the root -> text) that leads nowhere. Other sites are
/// not asked.
std::vector<std::string> broken_links(const Sources& pages, const fs::path& root) {
  std::map<std::string, Page> parsed;
  for (const auto& [path, text] : pages) parsed[path] = page_of(text);
  std::vector<std::string> broken;
  for (const auto& [path, from] : parsed) {
    for (const std::string& link : from.links) {
      if (link.find("://") != std::string::npos) continue;
      const size_t hash = link.find('#');
      const std::string file = link.substr(0, hash);
      const std::string target =
          file.empty() ? path : (fs::path(path).parent_path() / file).lexically_normal().string();
      const auto page = parsed.find(target);
      const bool there = page != parsed.end() || fs::exists(root / target);
      const bool has_anchor = hash == std::string::npos || page == parsed.end() ||
                              page->second.anchors.contains(link.substr(hash + 1));
      if (!there || !has_anchor) broken.push_back(path + ": " + link);
    }
  }
  return broken;
}

Sources all_pages() {
  Sources pages = read_sources({"docs", "bench", "containers", "tests", "recipes"}, {".md"});
  for (const char* page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"})
    pages[page] = read_text(std::string(TYCHO_SOURCE_DIR "/") + page);
  return pages;
}

TEST(Links, LeadToAPageAndAHeading) {
  const Sources pages = all_pages();
  ASSERT_GT(pages.size(), 40u);
  for (const std::string& link : broken_links(pages, TYCHO_SOURCE_DIR)) ADD_FAILURE() << link;
}

TEST(Links, EveryPageOfDocsIsInItsIndex) {
  const Sources pages = all_pages();
  std::set<std::string> listed = {"docs/README.md"};
  for (const std::string& link : page_of(pages.at("docs/README.md")).links)
    listed.insert((fs::path("docs") / link).lexically_normal().string());
  for (const auto& [path, text] : pages) {
    if (path.rfind("docs/", 0) != 0) continue;
    EXPECT_TRUE(listed.contains(path)) << path << " is not in docs/README.md";
  }
}

TEST(Links, ABrokenOneIsFound) {
  const Sources pages = {
      {"docs/a.md", "# Two `words`, [linked](b.md)\n[there](#two-words-linked) [not there](#two)\n"},
      {"docs/b.md",
       "```sh\n# comment\n```\n## Again\n## Again\n[a](a.md#again) [b](#again-1) [c](c.md) `[d](d.md)`\n"}};
  EXPECT_EQ(broken_links(pages, "/nowhere"),
            (std::vector<std::string>{"docs/a.md: #two", "docs/b.md: a.md#again", "docs/b.md: c.md"}));
}

}  // namespace
}  // namespace tycho::house
