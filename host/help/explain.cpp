// A page that has the name of a verb follows the verb's usage.
#include "host/help/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "host/help/doc_pages.h"
#include "host/help/pager.h"
#include "host/help/plain_page.h"
#include "host/other_words.h"
#include "host/verb.h"
#include "host/verb_help.h"
#include "trainer/base/error.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

const Verb* verb_named(const std::string& name) {
  for (const Verb& verb : all_verbs())
    if (name == verb.name) return &verb;
  return nullptr;
}

[[noreturn]] void refuse_topic(const std::string& given) {
  std::vector<std::string> names = all_topics();
  for (size_t i = 0, count = names.size(); i < count; ++i)
    if (const size_t slash = names[i].rfind('/'); slash != std::string::npos)
      names.push_back(names[i].substr(slash + 1));
  const std::vector<std::string> topics = names;
  for (const Verb& verb : all_verbs()) names.emplace_back(verb.name);
  if (nearest(given, topics).empty()) refuse_verb(given, "");
  fail(ExitCode::kUsage, "[tycho help] expected a verb or a topic, got \"{}\"; `tycho help` lists them{}",
       given, did_you_mean(given, names));
}

}  // namespace

int explain(const std::vector<std::string>& words) {
  const DocPage* page = find_page(fmt::format("{}", fmt::join(words, " ")));
  const Verb* verb = verb_named(words[0]);
  if (page != nullptr) {
    const std::string usage = verb == nullptr ? "" : help_of_verb(*verb, shown_options(*verb), {}) + "\n";
    page_text(usage + plain_page(page->text, columns_of_terminal()));
    return 0;
  }
  if (verb == nullptr) refuse_topic(words[0]);
  std::vector<std::string> options(words.begin() + 1, words.end());
  options.emplace_back("--help");
  bool help = false;
  parse_arguments(*verb, options, help);
  return 0;
}

}  // namespace tycho
