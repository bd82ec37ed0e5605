// A stretch of work with a name, as traces and tables of a profile show it.
#pragma once
#include <ATen/record_function.h>
#include <fmt/format.h>

#include <string>

namespace tycho {

/// From construction to destruction, on one thread: Range range("block ", 3, " forward"). Costs some
/// nanoseconds while no profile is recorded; its name is put together only then.
class Range {
 public:
  template <class... Parts>
  explicit Range(const Parts&... parts) : record_(at::RecordScope::USER_SCOPE) {
    if (!record_.isActive()) return;
    std::string name;
    ((name += fmt::format("{}", parts)), ...);
    record_.before(std::move(name));
  }

 private:
  at::RecordFunction record_;
};

}  // namespace tycho
