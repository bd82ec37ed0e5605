// The list of loggers that an imported recipe has.
#include "bindings/import/systems.h"

namespace tycho {

void open_sinks(Mapper& mapper, const DocEntry& entry) {
  mapper.out().open("r.log.sinks = {", 0, entry.node.place());
  mapper.out().write("t.log.jsonl {},", 0);
}

void list_component(Mapper& mapper, const DocEntry& entry, const std::string& constructor, const Rows& rows,
                    const std::vector<std::string>& last_fields) {
  mapper.out().comments_before(entry.node.line);
  mapper.out().open(constructor + " {", entry.node.line, entry.node.place());
  mapper.walk(entry, rows);
  for (const std::string& field : last_fields) mapper.out().write(field + ",", 0);
  mapper.out().close("},");
}

}  // namespace tycho
