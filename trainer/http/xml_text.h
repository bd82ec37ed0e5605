// The little of XML that stores answer with: elements without attributes, and their text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Returns what is between <name> and </name>, for each such element in order.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);
/// Returns the text of the first element, its entities replaced; "" when there is none.
std::string xml_value(std::string_view xml, std::string_view name);
/// Returns a text as it is written in XML.
std::string xml_escaped(std::string_view text);
/// Returns seconds since 1970 of "2026-11-27T08:00:00.000Z", "2026-11-27T09:00:00+01:00" or "Fri, 27 Nov
/// 2026 08:00:00 GMT"; 0 for others.
double store_time_s(const std::string& text);

}  // namespace tycho
