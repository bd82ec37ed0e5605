// Finds address and key as wandb's own client does.
#include "trainer/loggers/wandb_settings.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/secrets.h"
#include "trainer/base/text/base64.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

constexpr const char* kPublicUrl = "https://api.wandb.ai";

/// Returns "api.wandb.ai" for "https://api.wandb.ai:443/x".
std::string host_of(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find_first_of(":/", begin) - begin);
}

std::string base_url() {
  std::string url = environment_variable("WANDB_BASE_URL");
  if (url.empty()) url = kPublicUrl;
  while (url.ends_with('/')) url.pop_back();
  const bool is_web = url.starts_with("http://") || url.starts_with("https://");
  if (!is_web || host_of(url).empty() || url.find_first_of(" @?#") != std::string::npos)
    fail(ExitCode::kUnusable,
         "[wandb] WANDB_BASE_URL: expected https://HOST, got \"{}\"; write the address of the server alone, "
         "and its key into WANDB_API_KEY",
         without_secrets(url));
  return url;
}

/// Returns the file with keys by host.
std::string netrc_file() {
  if (std::string file = environment_variable("NETRC"); !file.empty()) return file;
  const std::string home = environment_variable("HOME");
  return std::filesystem::exists(home + "/.netrc") ? home + "/.netrc" : home + "/_netrc";
}

}  // namespace

bool is_online(const WandbSinkConfig& config) {
  if (!config.mode.empty()) return config.mode == "online";
  const std::string mode = environment_variable("WANDB_MODE");
  if (mode == "online" || mode == "run") return true;
  // "disabled" asks for what offline gives: that nothing is sent.
  if (mode.empty() || mode == "offline" || mode == "dryrun" || mode == "disabled") return false;
  fail(ExitCode::kRecipe,
       "[wandb] WANDB_MODE: expected online, offline or disabled, got \"{}\"; correct the variable, or write "
       "mode in t.log.wandb",
       mode);
}

std::optional<std::string> netrc_password(const std::string& text, const std::string& host) {
  std::istringstream words(text);
  bool is_entry = false;
  for (std::string word, value; words >> word;) {
    if (word.starts_with('#') || word == "macdef") {
      std::getline(words, value);
    } else if (word == "machine") {
      is_entry = words >> value && value == host;
    } else if (word == "default") {
      is_entry = true;
    } else if (word == "login" || word == "account" || word == "password") {
      if (words >> value && is_entry && word == "password") return value;
    }
  }
  return std::nullopt;
}

WandbSettings find_wandb_settings(const std::string& entity) {
  WandbSettings settings = {base_url(), entity.empty() ? environment_variable("WANDB_ENTITY") : entity, ""};
  std::string key = environment_variable("WANDB_API_KEY");
  const std::string file = netrc_file(), host = host_of(settings.url);
  if (key.empty() && std::filesystem::is_regular_file(file))
    key = netrc_password(read_file(file), host).value_or("");
  register_secret(key);
  if (key.empty())
    fail(ExitCode::kUnusable,
         "[wandb] expected a key for {} in WANDB_API_KEY or {}, got none; copy it from {}/authorize and "
         "export WANDB_API_KEY, or write mode = \"offline\"",
         host, file, settings.url == kPublicUrl ? "https://wandb.ai" : settings.url);
  if (std::any_of(key.begin(), key.end(), [](unsigned char c) { return c <= ' ' || c >= 127; }))
    fail(ExitCode::kUnusable,
         "[wandb] the key for {} has a space, a line break or another character that keys do not have; copy "
         "it again",
         host);
  const std::string pair = base64("api:" + key);
  register_secret(pair);
  settings.authorization = "Authorization: Basic " + pair;
  return settings;
}

std::string wandb_run_page(const std::string& url, const std::string& entity, const std::string& project,
                           const std::string& id) {
  const std::string app = url == kPublicUrl ? "https://wandb.ai" : url;
  return app + "/" + percent_encoded(entity) + "/" + percent_encoded(project) + "/runs/" +
         percent_encoded(id);
}

}  // namespace tycho
