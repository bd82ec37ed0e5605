// The names that objects may have in every store.
#include "trainer/buckets/bucket.h"

#include <string_view>

#include "trainer/base/error.h"

namespace tycho {

void check_object_name(const std::string& name, const std::string& place) {
  std::string_view rest = name;
  bool good = true;
  while (good) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    good = !part.empty() && part != "." && part != "..";
    for (const char c : part) good = good && static_cast<unsigned char>(c) >= ' ' && c != 127;
    if (slash == rest.npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (!good)
    fail(ExitCode::kUnusable,
         "[bucket] {}: expected the name of an object, parts joined with \"/\", got \"{}\"", place, name);
}

}  // namespace tycho
