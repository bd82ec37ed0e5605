// One case for each kind of remote.
#include "trainer/data/storage/open_remote_files.h"

#include "trainer/data/storage/folder_files.h"
#include "trainer/data/storage/http_files.h"
#include "trainer/data/storage/hub_remote.h"
#include "trainer/data/storage/s3_files.h"
#include "trainer/http/curl_library.h"

namespace tycho {

std::unique_ptr<RemoteFiles> open_remote_files(const RemoteUri& place, const std::string& sas_env) {
  switch (place.kind) {
    case RemoteUri::Kind::kFolder: return make_folder_files(place.folder);
    case RemoteUri::Kind::kHub: return make_hub_files(place);
    case RemoteUri::Kind::kS3: curl_library(); return make_s3_files(place);
    case RemoteUri::Kind::kAzure:
    case RemoteUri::Kind::kHttp: break;
  }
  curl_library();  // a machine without it hears so now, not in the middle of a run
  return make_web_files(place, sas_env);
}

}  // namespace tycho
