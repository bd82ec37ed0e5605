// Every kind of exception has the code that its cause has, and loses nothing of its text.
#include "trainer/base/as_error.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

std::string text_of(const Error& error) {
  return std::to_string(static_cast<int>(error.code())) + " " + error.what();
}

TEST(AsError, AnErrorStaysAsItIs) {
  EXPECT_EQ(text_of(as_error(Error("[disk] full", ExitCode::kStorage))), "15 [disk] full");
  EXPECT_EQ(text_of(as_error(Error("[disk] full"), ExitCode::kStorage)), "1 [disk] full");
}

TEST(AsError, RefusedMemoryAndThreadsAreNotReportedAsABug) {
  EXPECT_EQ(text_of(as_error(std::bad_alloc())), "14 [tycho] out of memory");
  const Error threads = as_error(std::system_error(EAGAIN, std::generic_category(), "thread"));
  EXPECT_EQ(threads.code(), ExitCode::kNumerics);
  EXPECT_NE(std::string(threads.what()).find("`ulimit -u`"), std::string::npos) << threads.what();
}

TEST(AsError, AFileThatCannotBeUsedIsNamed) {
  const Error error = as_error(
      std::filesystem::filesystem_error("cannot open", "/x/y", std::make_error_code(std::errc::io_error)));
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("/x/y"), std::string::npos) << error.what();
}

TEST(AsError, OtherExceptionsGetTheCallersCode) {
  EXPECT_EQ(text_of(as_error(std::runtime_error("odd"))), "1 [tycho] odd");
  EXPECT_EQ(text_of(as_error(std::runtime_error("odd"), ExitCode::kStorage)), "15 [tycho] odd");
}

}  // namespace
}  // namespace tycho
