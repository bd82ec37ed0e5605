// The parts of a writer that do not depend on the type of the config.
#include "trainer/base/json_writer.h"

namespace tycho {

void JsonWriter::set(const char* name, Json value) { object_[name] = std::move(value); }

}  // namespace tycho
