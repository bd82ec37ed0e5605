// Looks only when libcurl's own file is missing: an administrator may have built another one in.
#include "trainer/http/certificates.h"

namespace tycho {

std::string certificates_to_name(const std::string& built_in, const std::filesystem::path& root) {
  std::error_code error;
  const auto exists = [&](const std::string& file) {
    return !file.empty() &&
           std::filesystem::exists(root / std::filesystem::path(file).relative_path(), error);
  };
  if (exists(built_in)) return "";
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch
                           "/etc/pki/tls/certs/ca-bundle.crt",                   // RHEL, Fedora
                           "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // the file behind it
                           "/etc/ssl/ca-bundle.pem",                             // SUSE
                           "/etc/ssl/cert.pem"})                                 // Alpine
    if (exists(file)) return file;
  return "";
}

}  // namespace tycho
