// What is masked, and what is not.
#include "trainer/base/secrets.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tycho {
namespace {

TEST(Secrets, NamesThatUsuallyHoldOne) {
  for (const char* name : {"HF_TOKEN",
                           "GITHUBTOKEN",
                           "AWS_SECRET_ACCESS_KEY",
                           "apiKey",
                           "MYSQL_PWD",
                           "my_password",
                           "AZURE_SAS",
                           "GH_PAT",
                           "DB_PW",
                           "SLACK_WEBHOOK",
                           "JWT",
                           "SLURM_JWT",
                           "AZURE_STORAGE_CONNECTION_STRING",
                           "SENTRY_DSN",
                           "GOOGLE_CREDENTIALS",
                           "SSH_PRIVATE",
                           "OAUTH",
                           "DB.PASS",
                           "API_KEYS",
                           "PGPASSWORD"})
    EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"", "_", "PATH", "PWD", "OLDPWD", "LD_LIBRARY_PATH", "SLURM_JOB_ID",
                           "CUDA_VISIBLE_DEVICES", "TYCHO_CPU", "TOKENIZER", "MAX_TOKENS", "AUTHOR",
                           "NUM_PASSES", "PATTERN", "SIGMA", "COMPASS", "KEYBOARD"})
    EXPECT_FALSE(is_secret_name(name)) << name;
}

TEST(Secrets, UrlsLoseUserAndQuery) {
  const auto expect = [](const std::string& text, const std::string& shown) {
    EXPECT_EQ(without_secrets(text), shown);
    EXPECT_EQ(without_secrets(shown), shown);
  };
  expect("get http://me:pw@proxy:80/ and https://host/x?sig=abc now http://a/b@c",
         "get http://***@proxy:80/ and https://host/x?*** now http://a/b@c");
  expect("https://me:p@ss@host#part", "https://***@host#part");
  expect("a list http://a,http://me:pw@b/x,s3://k:v@c", "a list http://a,http://***@b/x,s3://***@c");
  expect("http://cache/http://me:pw@b", "http://cache/http://***@b");
  expect("\"https://h/?a=1&b=https://x:y@z\", 'http://h?k'", "\"https://h/?***\", 'http://h?***'");
  expect("https://h/x?sig=abc\nnext?", "https://h/x?***\nnext?");
  for (const char* same :
       {"", "no url", "://", "a://", "a://?", "a://@", "what? me@home", "http://h/a/b.html"})
    expect(same, same);
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += "://";
  EXPECT_EQ(without_secrets(many), many);
}

TEST(Secrets, RegisteredValuesAreMaskedEverywhereInAText) {
  EXPECT_EQ(without_secrets("canary-11"), "canary-11");
  EXPECT_FALSE(holds_secret("canary-11"));
  EXPECT_TRUE(register_secret("canary-11"));
  EXPECT_TRUE(register_secret("canary-11"));
  EXPECT_TRUE(register_secret("canary-11-and-more"));
  EXPECT_TRUE(register_secret("more-overlaps"));
  EXPECT_EQ(without_secrets("a canary-11, canary-11-and-more, canary-11canary-11 1"), "a ***, ***, ****** 1");
  EXPECT_EQ(without_secrets("canary-11-and-more-overlaps!"), "***!");
  EXPECT_EQ(without_secrets("https://h/canary-11?x=canary-11"), "https://h/***?***");
  EXPECT_TRUE(holds_secret("a canary-11"));
  EXPECT_FALSE(holds_secret("a canary-1"));
}

TEST(Secrets, ShortValuesAreNotMaskedAndAWarningSaysSo) {
  for (const char* value : {"", "1", "abcde"}) {
    EXPECT_FALSE(register_secret(value));
    EXPECT_EQ(without_secrets(std::string("x") + value), std::string("x") + value);
  }
}

TEST(Secrets, AKeyOfSeveralLinesIsMaskedLineByLine) {
  EXPECT_TRUE(register_secret("-----BEGIN\nfirst-line\n\nab\n          \nsecond-line\n"));
  EXPECT_EQ(without_secrets("a          b"), "a          b");
  EXPECT_EQ(without_secrets("1 first-line\n2 ab\n3 second-line"), "1 ***\n2 ab\n3 ***");
}

// The commit of a data set, and a token of the environment that its digits hold by chance.
TEST(Secrets, AreNotFoundInsideHashes) {
  EXPECT_TRUE(register_secret("0beefcafe0"));
  const std::string commit = "hf://acme/texts@1230beefcafe0456789abcdef0123456789abcde";
  const std::string longer = std::string(20, 'a') + "0beefcafe0" + std::string(34, '1');
  for (const std::string& text : {commit, longer, "sha256:" + longer}) {
    EXPECT_FALSE(holds_secret(text)) << text;
    EXPECT_EQ(without_secrets(text), text);
  }
  for (const std::string& text : std::vector<std::string>{"0beefcafe0", "x" + longer, longer + "z",
                                                          "key=0beefcafe0", longer + "0beefcafe0"})
    EXPECT_TRUE(holds_secret(text)) << text;
  EXPECT_TRUE(register_secret(longer));
  EXPECT_TRUE(holds_secret(longer));  // the whole value
}

TEST(Secrets, AreMaskedInEveryTextOfJson) {
  EXPECT_TRUE(register_secret("canary-json"));
  const Json json = {{"a", {"canary-json", 1, nullptr, {{"canary-json!", "x"}}}}, {"b", 2.5}};
  EXPECT_EQ(json_without_secrets(json).dump(), R"({"a":["***",1,null,{"***!":"x"}],"b":2.5})");
  EXPECT_EQ(json_without_secrets(Json()).dump(), "null");
  EXPECT_EQ(json_without_secrets(Json::object()).dump(), "{}");
}

TEST(Secrets, AreRegisteredWhileOtherThreadsMask) {
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) EXPECT_EQ(without_secrets("nothing to see"), "nothing to see");
  });
  for (int i = 0; i < 200; ++i) register_secret("thread-canary-" + std::to_string(i));
  done = true;
  reader.join();
  EXPECT_EQ(without_secrets("thread-canary-199"), "***");
}

}  // namespace
}  // namespace tycho
