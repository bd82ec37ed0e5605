// Chooses the store by the kind of place.
#include "trainer/buckets/open_bucket.h"

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

}  // namespace tycho
