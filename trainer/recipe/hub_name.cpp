// Parses names of the hub without asking it: a recipe may be checked on machines that cannot reach it.
#include "trainer/recipe/hub_name.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr std::string_view kScheme = "hf://";
constexpr std::string_view kForm = "hf://[datasets/]OWNER/NAME[@REVISION][/PATH]";
constexpr size_t kMostNameBytes = 96;

/// A name while it is parsed: the name, or what is wrong with it.
struct Parsed {
  HubName name;
  std::string problem;
};

bool is_of_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

bool is_hub_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

/// Says what is wrong with an owner or a name; "" if nothing is.
std::string part_problem(std::string_view part) {
  const bool has_edge = part.empty() || part.size() > kMostNameBytes || part.front() == '-' ||
                        part.front() == '.' || part.back() == '-' || part.back() == '.';
  if (has_edge || !std::all_of(part.begin(), part.end(), is_hub_character))
    return fmt::format(
        "expected an owner and a name of letters, digits, \"-\", \"_\" and \".\", got \"{}\"; write {}", part,
        kForm);
  if (part.find("--") != part.npos || part.find("..") != part.npos)
    return fmt::format("expected a name without \"--\" and \"..\", got \"{}\"", part);
  return "";
}

std::string id_problem(const std::string& id) {
  const size_t slash = id.find('/');
  for (const std::string& part : slash == std::string::npos
                                     ? std::array{id, id}
                                     : std::array{id.substr(0, slash), id.substr(slash + 1)})
    if (std::string problem = part_problem(part); !problem.empty()) return problem;
  return id.ends_with(".git") ? fmt::format("expected a name without .git, got \"{}\"", id) : "";
}

std::string path_problem(const std::string& path) {
  std::string_view rest = path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (part.empty() || part == "." || part == "..")
      return fmt::format("expected a path inside the repository, got \"{}\"", path);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

/// Returns the text with %2F and other codes decoded.
std::string decoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto value = [&](char c) { return kHex.find(static_cast<char>(std::tolower(c))); };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '%' && i + 2 < text.size() && value(text[i + 1]) != kHex.npos &&
                         value(text[i + 2]) != kHex.npos;
    plain += is_code ? static_cast<char>(value(text[i + 1]) * 16 + value(text[i + 2])) : text[i];
    if (is_code) i += 2;
  }
  return plain;
}

/// Returns the number of bytes of "refs/pr/N" or "refs/convert/NAME" at the beginning; 0 for other texts.
size_t special_ref_bytes(std::string_view text) {
  for (const std::string_view prefix : {"refs/pr/", "refs/convert/"}) {
    if (!text.starts_with(prefix)) continue;
    size_t end = prefix.size();
    const bool is_request = prefix == "refs/pr/";
    while (end < text.size() && (is_request ? std::isdigit(static_cast<unsigned char>(text[end])) != 0
                                            : is_hub_character(text[end])))
      ++end;
    if (end > prefix.size()) return end;
  }
  return 0;
}

/// Removes "datasets/" or "models/" from the front of `rest`. Returns what is wrong with another type.
std::string take_kind(std::string_view& rest, HubName& name) {
  const size_t slash = rest.find('/');
  const std::string_view first = rest.substr(0, slash);
  for (const std::string_view singular : {"model", "dataset"})
    if (first == singular)
      return fmt::format("expected \"{0}s/\", got \"{0}/\"; write hf://{0}s/OWNER/NAME", singular);
  for (const std::string_view other : {"spaces", "kernels", "buckets", "space", "kernel", "bucket"})
    if (first == other)
      return fmt::format("expected a model or a data set, got \"{}/\"; write {}", other, kForm);
  if (first != "datasets" && first != "models") return "";
  name.kind = first == "datasets" ? HubName::Kind::kDataset : HubName::Kind::kModel;
  rest.remove_prefix(slash == rest.npos ? rest.size() : slash + 1);
  return "";
}

void read_revision_and_path(std::string_view rest, HubName& name) {
  size_t end = special_ref_bytes(rest);
  if (end == 0) end = std::min(rest.find('/'), rest.size());
  name.revision = decoded(rest.substr(0, end));
  rest.remove_prefix(end);
  if (rest.starts_with('/')) rest.remove_prefix(1);
  name.path = rest;
}

Parsed parsed(std::string_view text) {
  Parsed result;
  HubName& name = result.name;
  std::string_view rest = text.substr(kScheme.size());
  for (const char c : rest)
    if (static_cast<unsigned char>(c) < ' ' || c == '\\') return {{}, "holds a control character or \"\\\""};
  if (result.problem = take_kind(rest, name); !result.problem.empty()) return result;
  while (rest.starts_with('/')) rest.remove_prefix(1);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t owner_end = rest.find('/');
  const size_t name_end = owner_end == rest.npos ? rest.npos : rest.find('/', owner_end + 1);
  const size_t at = rest.find('@');
  if (at == rest.npos || at > name_end) {
    name.id = rest.substr(0, name_end);
    if (name_end != rest.npos) name.path = rest.substr(name_end + 1);
  } else {
    name.id = rest.substr(0, at);
    read_revision_and_path(rest.substr(at + 1), name);
    if (name.revision.empty())
      result.problem = "expected a revision after \"@\": a branch, a tag or a commit";
  }
  if (name.id.empty()) result.problem = fmt::format("names no repository; write {}", kForm);
  if (result.problem.empty()) result.problem = id_problem(name.id);
  if (result.problem.empty()) result.problem = path_problem(name.path);
  if (result.problem.empty() && !name.revision.empty()) result.problem = path_problem(name.revision);
  return result;
}

}  // namespace

std::string HubName::repository() const {
  return fmt::format("{}{}{}", kScheme, kind == Kind::kDataset ? "datasets/" : "", id);
}

std::string HubName::text() const {
  std::string shown = repository();
  std::string at = revision;
  // "hf://gpt2/config.json" would name a repository of the owner gpt2.
  if (at.empty() && !path.empty() && id.find('/') == std::string::npos) at = "main";
  if (!at.empty() && special_ref_bytes(at) != at.size())
    for (size_t i = at.find('/'); i != std::string::npos; i = at.find('/', i)) at.replace(i, 1, "%2F");
  if (!at.empty()) shown += "@" + at;
  return path.empty() ? shown : shown + "/" + path;
}

HubName HubName::at(const std::string& other_revision) const {
  HubName other = *this;
  other.revision = other_revision;
  return other;
}

HubName HubName::below(const std::string& inside) const {
  HubName other = *this;
  if (!inside.empty()) other.path += (path.empty() ? "" : "/") + inside;
  return other;
}

bool is_hub_name(std::string_view text) { return text.starts_with(kScheme); }

bool is_commit(std::string_view text) { return text.size() == 40 && is_of_digits(text, "0123456789abcdef"); }

std::string hub_name_problem(const std::string& text) {
  if (!is_hub_name(text)) return fmt::format("expected {}", kForm);
  return parsed(text).problem;
}

HubName parse_hub_name(const std::string& text) {
  if (const std::string problem = hub_name_problem(text); !problem.empty())
    fail(ExitCode::kUnusable, "[hub] {}: {}", text, problem);
  return parsed(text).name;
}

}  // namespace tycho
