// Python itself is not asked: it may not be on the PATH, and takes longer to start than `tycho --help`.
#include "host/torch_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Returns the text between the quotes of a line such as "cuda: Optional[str] = '13.0'"; "" for None.
std::string between_quotes(const std::string& line) {
  const size_t begin = line.find('\''), end = line.rfind('\'');
  return begin == end ? "" : line.substr(begin + 1, end - begin - 1);
}

/// Returns the number before the first dot.
std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

/// Returns true for "2.11", "2.11.1" and "2.11.0a0+git" when `wanted` is "2.11".
bool is_release(const std::string& version, const std::string& wanted) {
  return version.starts_with(wanted) &&
         (version.size() == wanted.size() ||
          std::isdigit(static_cast<unsigned char>(version[wanted.size()])) == 0);
}

void add(const fs::path& torch, std::vector<fs::path>& found) {
  std::error_code error;
  if (fs::exists(torch / "lib/libtorch_cpu.so", error) &&
      std::find(found.begin(), found.end(), torch) == found.end())
    found.push_back(torch);
}

/// Adds the torch folders below a prefix, of the newest Python first.
void add_from(const fs::path& prefix, std::vector<fs::path>& found) {
  for (const char* lib : {"lib", "lib64"}) {
    std::error_code error;
    std::vector<fs::path> pythons;
    for (const auto& entry : fs::directory_iterator(prefix / lib, error))
      if (entry.path().filename().string().starts_with("python3")) pythons.push_back(entry.path());
    const auto newer = [](const fs::path& a, const fs::path& b) {  // python3.9 is older than python3.11
      const std::string first = a.filename(), second = b.filename();
      return first.size() != second.size() ? first.size() > second.size() : first > second;
    };
    std::sort(pythons.begin(), pythons.end(), newer);
    for (const fs::path& python : pythons)
      for (const char* packages : {"site-packages", "dist-packages"}) add(python / packages / "torch", found);
  }
  add(prefix / "torch", found);
}

/// Returns the prefix of the Python of a virtual environment that uses the packages of the system; "" for
/// other folders.
fs::path base_of_environment(const fs::path& prefix) {
  std::ifstream file(prefix / "pyvenv.cfg");
  std::string home;
  bool uses_system = false;
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(' ', equals - 1) + 1);
    const std::string value = line.substr(std::min(line.find_first_not_of(' ', equals + 1), line.size()));
    if (key == "home") home = value;
    if (key == "include-system-site-packages") uses_system = value == "true";
  }
  return uses_system && !home.empty() ? fs::path(home).parent_path() : fs::path();
}

}  // namespace

std::optional<TorchFacts> read_torch_facts(const fs::path& torch) {
  if (std::ifstream file(torch / "version.py"); file) {
    TorchFacts facts;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("__version__ =")) facts.version = between_quotes(line);
      if (line.starts_with("cuda:") || line.starts_with("cuda =")) facts.cuda = between_quotes(line);
    }
    if (!facts.version.empty()) return facts;
  }
  std::string version;
  if (std::ifstream file(torch / "build-version"); file && std::getline(file, version) && !version.empty()) {
    const size_t cuda = version.find("+cu");  // 2.11.0+cu130
    const bool has_cuda = cuda != std::string::npos && version.size() > cuda + 4;
    return TorchFacts{
        version, has_cuda ? version.substr(cuda + 3, version.size() - cuda - 4) + "." + version.back() : ""};
  }
  return std::nullopt;
}

std::string torch_problem(const fs::path& torch, const TorchNeed& need) {
  const std::optional<TorchFacts> facts = read_torch_facts(torch);
  if (!facts) return "";
  const std::string todo = fmt::format(
      "`pip install 'torch=={}.*'` in the environment of this program installs it; if LD_LIBRARY_PATH names "
      "another one, take "
      "it out",
      need.version);
  if (!is_release(facts->version, need.version))
    return fmt::format("expected torch {}, got {} in {}: {}", need.version, facts->version, torch.string(),
                       todo);
  if (!need.cuda_major.empty() && !facts->cuda.empty() && major_of(facts->cuda) != need.cuda_major)
    return fmt::format("expected torch {} with CUDA {} or without CUDA, got {} with CUDA {} in {}: {}",
                       need.version, need.cuda_major, facts->version, facts->cuda, torch.string(), todo);
  return "";
}

std::vector<fs::path> installed_torches(const fs::path& prefix, const fs::path& user_base,
                                        const fs::path& root) {
  std::vector<fs::path> found;
  add_from(prefix, found);
  if (const fs::path base = base_of_environment(prefix); !base.empty())
    add_from(root / base.relative_path(), found);
  if (!user_base.empty()) add_from(user_base, found);
  for (const char* system : {"usr/local", "usr"}) add_from(root / system, found);
  return found;
}

}  // namespace tycho
