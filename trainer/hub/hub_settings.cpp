// Reads the variables in the order of huggingface_hub 2.4, so that both find the same cache and token.
#include "trainer/hub/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/regular_file.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

constexpr int64_t kMostTokenBytes = 64 << 10;

bool is_true(const char* name) {
  std::string value = environment_variable(name);
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

/// Returns the path with ~ and $VARIABLES replaced.
std::string expanded(std::string path) {
  if (path == "~" || path.starts_with("~/")) path = environment_variable("HOME") + path.substr(1);
  std::string whole;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '$') {
      whole += path[i];
      continue;
    }
    const bool is_braced = i + 1 < path.size() && path[i + 1] == '{';
    const size_t begin = i + (is_braced ? 2 : 1);
    size_t end = begin;
    while (end < path.size() &&
           (std::isalnum(static_cast<unsigned char>(path[end])) != 0 || path[end] == '_'))
      ++end;
    const std::string name = path.substr(begin, end - begin);
    const bool is_whole = !name.empty() && (!is_braced || (end < path.size() && path[end] == '}'));
    const char* value = is_whole ? std::getenv(name.c_str()) : nullptr;
    const size_t next = is_braced && is_whole ? end + 1 : std::max(end, i + 1);
    whole += value != nullptr ? std::string(value) : path.substr(i, next - i);
    i = next - 1;
  }
  return whole;
}

std::string hub_home() {
  if (const std::string home = environment_variable("HF_HOME"); !home.empty()) return expanded(home);
  const std::string caches = environment_variable("XDG_CACHE_HOME");
  return expanded((caches.empty() ? "~/.cache" : caches) + "/huggingface");
}

std::string trimmed(std::string text) {
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });
  while (!text.empty() && text.back() <= ' ') text.pop_back();
  while (!text.empty() && text.front() <= ' ') text.erase(0, 1);
  return text;
}

std::string find_token(const std::string& home) {
  std::string token = trimmed(first_environment_variable({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}));
  std::string path = environment_variable("HF_TOKEN_PATH");
  path = path.empty() ? home + "/token" : expanded(path);
  std::error_code error;
  if (token.empty() && std::filesystem::is_regular_file(path, error))
    token = trimmed(read_file_up_to(path, kMostTokenBytes));
  if (std::any_of(token.begin(), token.end(), [](unsigned char c) { return c <= ' ' || c >= 127; }))
    fail(ExitCode::kUnusable,
         "[hub] expected a token of letters and digits in HF_TOKEN or {}, got other characters", path);
  register_secret(token);
  return is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN") ? "" : token;
}

}  // namespace

HubSettings hub_settings() {
  HubSettings settings;
  if (const std::string endpoint = environment_variable("HF_ENDPOINT"); !endpoint.empty())
    settings.endpoint = endpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const bool is_address =
      settings.endpoint.starts_with("https://") || settings.endpoint.starts_with("http://");
  if (!is_address || settings.endpoint.find_first_of("@?# ") != std::string::npos)
    fail(ExitCode::kUnusable, "[hub] HF_ENDPOINT expected https://HOST, got {}",
         without_secrets(settings.endpoint));
  const std::string home = hub_home();
  const std::string cache = first_environment_variable({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  settings.cache = cache.empty() ? home + "/hub" : expanded(cache);
  settings.token = find_token(home);
  settings.is_offline = is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE");
  settings.has_links = !is_true("HF_HUB_DISABLE_SYMLINKS");
  settings.shares_blobs = !is_true("HF_HUB_DISABLE_SHARED_BLOBS") && !is_true("HF_HUB_DISABLE_XET");
  return settings;
}

}  // namespace tycho
