// Cases that every kind of store must pass.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/buckets/bucket.h"

namespace tycho::testing {

/// An empty store for one test.
class BucketPlace {
 public:
  virtual ~BucketPlace() = default;
  /// Opens the store anew, as another process would.
  virtual std::unique_ptr<Bucket> open() = 0;
  /// Leaves an unfinished upload to `name` behind, as kill -9 does.
  virtual void leave_unfinished(const std::string& name) = 0;
  /// Smallest part of an upload that the store takes.
  virtual int64_t part_bytes() const { return 1 << 20; }
  /// False for a server that gives every unfinished upload one time.
  virtual bool knows_ages() const { return true; }
};

struct BucketKind {
  std::string name;
  std::function<std::unique_ptr<BucketPlace>()> make;
};

inline void PrintTo(const BucketKind& kind, std::ostream* out) { *out << kind.name; }

class BucketConformance : public ::testing::TestWithParam<BucketKind> {
 protected:
  BucketConformance() {
    ::setenv("no_proxy", "127.0.0.1", 1);
    std::string pattern = std::filesystem::temp_directory_path() / "tycho-upload-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    place_ = GetParam().make();
    bucket_ = place_->open();
  }
  ~BucketConformance() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> names(const std::string& prefix = "") {
    std::vector<std::string> found;
    for (const StoredObject& object : bucket_->list(prefix)) found.push_back(object.name);
    return found;
  }
  std::string get(const std::string& name) { return bucket_->get(name, 1 << 30).value_or("(absent)"); }
  /// Returns bytes that no part repeats.
  static std::string long_text(size_t num_bytes) {
    std::string text(num_bytes, '\0');
    uint32_t state = 1;
    for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    return text;
  }
  std::string file(const std::string& bytes) {
    std::string path = folder_ + "/file";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  template <class Act>
  static void expect_error(ExitCode code, const std::string& text, const Act& act) {
    try {
      act();
      ADD_FAILURE() << "no Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }

  std::string folder_;
  std::unique_ptr<BucketPlace> place_;
  std::unique_ptr<Bucket> bucket_;
};

TEST_P(BucketConformance, GivesBackWhatWasPut) {
  const std::string bytes("a\0b\r\n\xff<&>", 9);
  EXPECT_TRUE(bucket_->put("run/COMMIT", bytes, PutWhen::kAlways));
  EXPECT_EQ(get("run/COMMIT"), bytes);
  EXPECT_TRUE(bucket_->put("run/COMMIT", "", PutWhen::kAlways));
  EXPECT_EQ(get("run/COMMIT"), "");
  EXPECT_EQ(place_->open()->get("run/COMMIT", 10), "");
}

TEST_P(BucketConformance, AnAbsentObjectIsNotAnError) {
  EXPECT_EQ(bucket_->get("absent", 10), std::nullopt);
  EXPECT_TRUE(bucket_->list("").empty());
  EXPECT_TRUE(bucket_->list("absent/folder/").empty());
  bucket_->remove({"absent"});
  bucket_->remove({});
}

TEST_P(BucketConformance, KeepsNamesOfAllCharacters) {
  std::vector<std::string> all = {"a b/c+d%25", "q?x=1&y#z", "\xc3\xa9t\xc3\xa9/~'()*!", "<tag>&amp;\"",
                                  "=,;:@$"};
  for (const std::string& name : all) bucket_->put(name, name, PutWhen::kAlways);
  for (const std::string& name : all) EXPECT_EQ(get(name), name);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(names(), all);
  EXPECT_EQ(names("a b/"), std::vector<std::string>{"a b/c+d%25"});
  bucket_->remove(all);
  EXPECT_TRUE(names().empty());
}

TEST_P(BucketConformance, RefusesNamesThatAreNoNames) {
  for (const char* name : {"", "/a", "a/", "a//b", "../a", "a/./b", "a\nb"})
    expect_error(ExitCode::kUnusable, "expected the name of an object",
                 [&] { bucket_->put(name, "x", PutWhen::kAlways); });
  EXPECT_TRUE(names().empty());
}

TEST_P(BucketConformance, WritesOnlyWhereNothingIs) {
  EXPECT_TRUE(bucket_->put("lock", "first", PutWhen::kAbsent));
  EXPECT_FALSE(bucket_->put("lock", "second", PutWhen::kAbsent));
  EXPECT_FALSE(place_->open()->put("lock", "third", PutWhen::kAbsent));
  EXPECT_EQ(get("lock"), "first");
}

TEST_P(BucketConformance, OfManyWritersOneSucceeds) {
  std::atomic<int> winners = 0;
  std::string winner;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 8; ++i)
      writers.emplace_back([&, i] {
        const std::string id = "writer " + std::to_string(i);
        if (place_->open()->put("claims/1", id, PutWhen::kAbsent) && winners++ == 0) winner = id;
      });
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(get("claims/1"), winner);
}

TEST_P(BucketConformance, RefusesAnObjectLongerThanAllowed) {
  bucket_->put("a", "12345", PutWhen::kAlways);
  EXPECT_EQ(bucket_->get("a", 5), "12345");
  expect_error(ExitCode::kUnusable, "expected at most 4 bytes", [&] { bucket_->get("a", 4); });
}

TEST_P(BucketConformance, ReadsRanges) {
  bucket_->put("a", "0123456789", PutWhen::kAlways);
  std::string out(4, ' ');
  bucket_->read("a", 3, out);
  EXPECT_EQ(out, "3456");
  bucket_->read("a", 6, out);
  EXPECT_EQ(out, "6789");
  bucket_->read("a", 10, std::span<char>());
  expect_error(ExitCode::kUnusable, "expected 4 bytes from byte 7 on", [&] { bucket_->read("a", 7, out); });
  expect_error(ExitCode::kUnusable, "expected 4 bytes from byte 12 on", [&] { bucket_->read("a", 12, out); });
  expect_error(ExitCode::kUnusable, "absent", [&] { bucket_->read("absent", 0, out); });
}

TEST_P(BucketConformance, ListsByPrefixSortedWithSizesAndVersions) {
  for (const char* name : {"b/1", "a/2", "a/10", "a.x", "ab", "a/sub/x"})
    bucket_->put(name, name, PutWhen::kAlways);
  EXPECT_EQ(names(), (std::vector<std::string>{"a.x", "a/10", "a/2", "a/sub/x", "ab", "b/1"}));
  EXPECT_EQ(names("a/"), (std::vector<std::string>{"a/10", "a/2", "a/sub/x"}));
  EXPECT_EQ(names("a"), (std::vector<std::string>{"a.x", "a/10", "a/2", "a/sub/x", "ab"}));
  EXPECT_EQ(names("a/1"), std::vector<std::string>{"a/10"});
  const StoredObject before = bucket_->list("a/sub/").at(0);
  EXPECT_EQ(before.num_bytes, 7);
  EXPECT_GT(before.modified_s, 1.6e9);
  bucket_->put("a/sub/x", "another text", PutWhen::kAlways);
  EXPECT_NE(bucket_->list("a/sub/").at(0).version, before.version);
}

TEST_P(BucketConformance, ListsMoreThanAPage) {
  std::vector<std::string> all;
  for (int i = 0; i < 25; ++i) all.push_back(fmt::format("step-{:03}/COMMIT", i));
  for (const std::string& name : all) bucket_->put(name, "x", PutWhen::kAlways);
  EXPECT_EQ(names(), all);
  bucket_->remove(all);
  EXPECT_TRUE(names().empty());
}

TEST_P(BucketConformance, UploadsFilesOfAllSizes) {
  const int64_t part = place_->part_bytes();
  for (const int64_t size : {int64_t{0}, int64_t{1}, part - 1, part, part + 1, 3 * part, 3 * part + 7}) {
    const std::string bytes = long_text(static_cast<size_t>(size));
    int64_t reported = 0;
    bucket_->put_file(
        "run/shard", file(bytes), size,
        {.part_bytes = part, .num_connections = 2, .progress = [&](int64_t n) { reported += n; }});
    EXPECT_TRUE(get("run/shard") == bytes) << size;
    EXPECT_EQ(reported, size);
  }
  EXPECT_EQ(names(), std::vector<std::string>{"run/shard"});
  EXPECT_EQ(bucket_->abort_unfinished("", -3600), 0);
}

TEST_P(BucketConformance, RefusesAFileOfAnotherSize) {
  expect_error(ExitCode::kUnusable, "expected 4 bytes to upload, got 3",
               [&] { bucket_->put_file("a", file("abc"), 4, {}); });
  expect_error(ExitCode::kUnusable, "cannot read", [&] { bucket_->put_file("a", folder_ + "/none", 4, {}); });
  EXPECT_TRUE(names().empty());
}

TEST_P(BucketConformance, AbortsUnfinishedUploads) {
  place_->leave_unfinished("run-1/shard");
  place_->leave_unfinished("run-2/shard");
  EXPECT_TRUE(names().empty());
  if (place_->knows_ages()) {
    EXPECT_EQ(bucket_->abort_unfinished("run-1/", 3600), 0);
  }
  EXPECT_EQ(bucket_->abort_unfinished("run-1/", -3600), 1);
  EXPECT_EQ(bucket_->abort_unfinished("run-", -3600), 1);
  EXPECT_EQ(bucket_->abort_unfinished("", -3600), 0);
}

TEST_P(BucketConformance, UploadsOverAnUnfinishedUpload) {
  const int64_t part = place_->part_bytes();
  place_->leave_unfinished("run/shard");
  const std::string bytes = long_text(static_cast<size_t>(2 * part + 5));
  bucket_->put_file("run/shard", file(bytes), 2 * part + 5, {.part_bytes = part});
  EXPECT_TRUE(get("run/shard") == bytes);
}

TEST_P(BucketConformance, AStopEndsEveryCall) {
  bucket_->put("a", "abc", PutWhen::kAlways);
  std::stop_source stop;
  stop.request_stop();
  std::string out(3, ' ');
  const std::stop_token token = stop.get_token();
  const auto stopped = [&](const auto& act) { expect_error(ExitCode::kTerminated, "stopped", act); };
  stopped([&] { bucket_->put("b", "x", PutWhen::kAlways, token); });
  stopped([&] { bucket_->put_file("b", file("abc"), 3, {}, token); });
  stopped([&] { bucket_->get("a", 10, token); });
  stopped([&] { bucket_->read("a", 0, out, token); });
  stopped([&] { bucket_->list("", token); });
  stopped([&] { bucket_->remove({"a"}, token); });
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

}  // namespace tycho::testing
