// Against the example of AWS's documentation ("Authenticating Requests: Using the Authorization Header").
#include "trainer/identities/aws_signature.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tycho {
namespace {

const AwsCredentials kExample = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};

TEST(AwsSignatureTest, SignsTheExampleOfTheDocumentation) {
  const auto lines = signed_headers({"examplebucket.s3.amazonaws.com",
                                     "/test.txt",
                                     {{"range", "bytes=0-9"}},
                                     "us-east-1",
                                     "s3",
                                     "20130524T000000Z"},
                                    kExample);
  EXPECT_EQ(
      lines.back(),
      "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
      "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_NE(std::find(lines.begin(), lines.end(), "x-amz-date: 20130524T000000Z"), lines.end());
}

TEST(AwsSignatureTest, SignsTheBodyOfTheDocumentationsUpload) {
  const auto lines = signed_headers(
      {.host = "examplebucket.s3.amazonaws.com",
       .path = "/test%24file.text",
       .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
       .region = "us-east-1",
       .time = "20130524T000000Z",
       .method = "PUT",
       .body = "Welcome to Amazon S3."},
      kExample);
  EXPECT_EQ(
      lines.back(),
      "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
      "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,"
      "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(AwsSignatureTest, SignsTheTokenOfASession) {
  AwsCredentials session = kExample;
  session.session_token = "TOKEN";
  const auto lines = signed_headers({"h", "/x", {}, "us-east-1", "s3", "20130524T000000Z"}, session);
  EXPECT_NE(std::find(lines.begin(), lines.end(), "x-amz-security-token: TOKEN"), lines.end());
  EXPECT_NE(lines.back().find("host;x-amz-content-sha256;x-amz-date;x-amz-security-token"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
