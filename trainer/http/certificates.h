// Places where a system keeps the certificates that it trusts.
#pragma once
#include <filesystem>
#include <string>

namespace tycho {

/// Returns the file of certificates that libcurl must be told: "" when its built-in file exists here, or no
/// known one does. A packaged libcurl comes from Debian and may run on RHEL or SUSE. `root` is put before all
/// paths; tests use it.
std::string certificates_to_name(const std::string& built_in, const std::filesystem::path& root = "/");

}  // namespace tycho
