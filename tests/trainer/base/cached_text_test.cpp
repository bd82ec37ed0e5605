// Texts that a machine keeps: read as they were written, and not at all where they are damaged.
#include "trainer/base/cached_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

TEST(CachedText, IsReadAsItWasWritten) {
  const TempDir temp;
  const std::string path = temp.path() + "/new/folder/text", text("two\nlines\0", 10);
  EXPECT_EQ(cached_text(path), std::nullopt);
  cache_text(path, text);
  EXPECT_EQ(cached_text(path), text);
  cache_text(path, "");
  EXPECT_EQ(cached_text(path), "");
}

TEST(CachedText, IsNothingWhereItIsDamaged) {
  const TempDir temp;
  const std::string path = temp.path() + "/text";
  cache_text(path, "numbers 1 2 3");
  const std::string whole = read_file(path);
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() - 1), whole.substr(0, 9),
                                     whole + "4", std::string("numbers 1 2 3")}) {
    std::ofstream(path) << damaged;
    EXPECT_EQ(cached_text(path), std::nullopt) << damaged;
  }
}

TEST(CachedText, IsLostWithoutAnErrorWhereNothingCanBeWritten) {
  cache_text("/proc/1/nowhere/text", "x");
  EXPECT_EQ(cached_text("/proc/1/nowhere/text"), std::nullopt);
}

TEST(CachedFolder, IsInTheUsersCache) {
  const char* const caches = std::getenv("XDG_CACHE_HOME");
  const std::string before = caches == nullptr ? "" : caches;
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(cached_folder("products"), "/caches/tycho/products");
  unsetenv("XDG_CACHE_HOME");
  if (const char* home = std::getenv("HOME")) {
    EXPECT_EQ(cached_folder("products"), std::string(home) + "/.cache/tycho/products");
  }
  if (caches != nullptr) setenv("XDG_CACHE_HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace tycho
