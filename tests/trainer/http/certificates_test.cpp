// Tests of where trusted certificates are found on systems that a packaged libcurl was not built for.
#include "trainer/http/certificates.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDebian = "/etc/ssl/certs/ca-certificates.crt";
constexpr const char* kRedHat = "/etc/pki/tls/certs/ca-bundle.crt";

class CertificatesTest : public ::testing::Test {
 protected:
  void put(const std::string& file) {
    const fs::path path = root_ / fs::path(file).relative_path();
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "certificates\n";
  }
  std::string found(const std::string& built_in) const {
    return certificates_to_name(built_in, root_.path());
  }
  const TempDir root_;
};

TEST_F(CertificatesTest, AreLeftToLibcurlWhereItsOwnFileExists) {
  put(kDebian);
  EXPECT_EQ(found(kDebian), "");
  put("/opt/site/cert.pem");
  EXPECT_EQ(found("/opt/site/cert.pem"), "");
}

TEST_F(CertificatesTest, OfRedHatAreFoundByALibcurlFromDebian) {
  put(kRedHat);
  EXPECT_EQ(found(kDebian), kRedHat);
}

TEST_F(CertificatesTest, OfDebianAreFoundByALibcurlFromRedHat) {
  put(kDebian);
  EXPECT_EQ(found(kRedHat), kDebian);
  EXPECT_EQ(found(""), kDebian);
}

TEST_F(CertificatesTest, AreNotNamedWhereThereAreNone) { EXPECT_EQ(found(kDebian), ""); }

}  // namespace
}  // namespace tycho
