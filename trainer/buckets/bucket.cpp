// Chooses the store by the kind of place.
#include "trainer/buckets/bucket.h"

#include <string_view>

#include "trainer/base/error.h"
#include "trainer/buckets/azure_bucket.h"
#include "trainer/buckets/folder_bucket.h"
#include "trainer/buckets/s3_bucket.h"
#include "trainer/data/storage/azure_access.h"

namespace tycho {

std::unique_ptr<Bucket> open_bucket(const RemoteUri& given, const RequestTries& tries) {
  const RemoteUri place = as_azure_place(given);
  switch (place.kind) {
    case RemoteUri::Kind::kFolder: return make_folder_bucket(place.folder);
    case RemoteUri::Kind::kS3: return make_s3_bucket(place, tries);
    case RemoteUri::Kind::kAzure: return make_azure_bucket(place, tries);
    case RemoteUri::Kind::kHub:
      fail(ExitCode::kUnusable,
           "[bucket] expected a store of checkpoints, got {}, which is on the Hugging Face hub and cannot be "
           "written to here; `tycho convert {} FOLDER` makes a checkpoint of a model there",
           place.text, place.text);
    case RemoteUri::Kind::kHttp: break;
  }
  fail(ExitCode::kUnusable,
       "[bucket] {} cannot be written to: expected s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX, "
       "gs://BUCKET/PREFIX or file:///FOLDER",
       place.text);
}

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
