// Answers requests in order; an interrupt is taken on the reader's thread while an entry runs.
#include "host/repl/json_lines.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <utility>

#include "host/repl/line_reader.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

constexpr const char* kWanted =
    R"(expected {"id": 1, "entry": "1 + 2"}, {"id": 2, "complete": "r.opt"} or {"interrupt": true})";

/// Parses the object in a line; null when there is none.
Json object_in(const std::string& line) {
  try {
    Json request = parse_json(line, "a line");
    return request.is_object() ? request : Json();
  } catch (const Error&) {
    return {};
  }
}

bool is_interrupt(const Json& request) {
  return request.is_object() && request.value("interrupt", Json()) == true;
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// Returns the string under a key when the request has only that key and an id.
std::optional<std::string> only(const Json& request, const char* key) {
  const size_t size = request.contains("id") ? 2 : 1;
  if (request.size() != size || !request.contains(key) || !request.at(key).is_string()) return std::nullopt;
  return request.at(key).get<std::string>();
}

}  // namespace

void JsonLines::output(std::string_view text) {
  newest_output_ = text;
  say({{"output", newest_output_}});
}

void JsonLines::say(const Json& what) {
  Json line = Json::object();
  if (!id_.is_null()) line["id"] = id_;
  line.update(json_without_secrets(what));
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void JsonLines::fail(const std::string& message, ExitCode code) {
  say({{"error", {{"message", message}, {"exit", static_cast<int>(code)}}}});
}

std::string JsonLines::run(Prompt& prompt, const std::string& entry) {
  const EntryEnd end = prompt.enter(entry);
  if (!end.value.empty()) say({{"value", end.value}});
  if (end.status == "error") {
    // A command that refuses prints why.
    Json error = {{"message", trimmed(end.failure.empty() ? newest_output_ : end.failure)},
                  {"exit", end.exit}};
    if (end.place.is_object()) error.update(end.place);
    say({{"error", error}});
  }
  is_over_ = end.status == "quit";
  return end.status;
}

void JsonLines::answer(Prompt& prompt, const Json& request) {
  if (request.is_object()) id_ = request.value("id", Json());
  if (const auto entry = request.is_object() ? only(request, "entry") : std::nullopt) {
    say({{"done", run(prompt, *entry)}});
  } else if (const auto line = request.is_object() ? only(request, "complete") : std::nullopt) {
    const Completions found = prompt.complete(*line);
    say({{"words", found.words}, {"hint", found.hint}});
    say({{"done", "ok"}});
  } else {
    fail(kWanted, ExitCode::kUsage);
    say({{"done", "error"}});
  }
  id_ = nullptr;
}

int JsonLines::serve(Prompt& prompt, const Prompt::Start& start) {
  if (!start.is_whole)
    fail(trimmed(start.text), ExitCode::kRecipe);
  else if (!start.text.empty())
    output(start.text);
  say({{"ready", TYCHO_VERSION}});
  std::atomic<bool> busy = false;
  LineReader lines([&busy, main = pthread_self()](const std::string& line) {
    if (!is_interrupt(object_in(line))) return false;
    if (busy) pthread_kill(main, SIGINT);
    return true;
  });
  while (!is_over_) {
    const std::optional<std::string> line = lines.next();
    if (!line) break;
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    take_interrupt();  // one that came too late for the entry before
    busy = true;
    answer(prompt, object_in(*line));
    busy = false;
  }
  return 0;
}

}  // namespace tycho
