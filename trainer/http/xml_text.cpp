// Searches for tags; no store nests an element in one of its own name.
#include "trainer/http/xml_text.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace tycho {
namespace {

/// Adds a character as UTF-8.
void add_utf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18 & 7));
    text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t end = text[i] == '&' ? text.find(';', i) : text.npos;
    if (end == text.npos) {
      out += text[i];
      continue;
    }
    const std::string name(text.substr(i + 1, end - i - 1));
    if (name == "amp") out += '&';
    if (name == "lt") out += '<';
    if (name == "gt") out += '>';
    if (name == "quot") out += '"';
    if (name == "apos") out += '\'';
    if (name.starts_with("#x"))
      add_utf8(out, static_cast<uint32_t>(std::strtoul(name.c_str() + 2, nullptr, 16)));
    else if (name.starts_with("#"))
      add_utf8(out, static_cast<uint32_t>(std::strtoul(name.c_str() + 1, nullptr, 10)));
    i = end;
  }
  return out;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  std::vector<std::string_view> found;
  for (size_t at = 0; (at = xml.find(open, at)) != xml.npos;) {
    at += open.size();
    const size_t end = xml.find(close, at);
    if (end == xml.npos) break;
    found.push_back(xml.substr(at, end - at));
    at = end + close.size();
  }
  return found;
}

std::string xml_value(std::string_view xml, std::string_view name) {
  const auto found = xml_elements(xml, name);
  return found.empty() ? "" : unescaped(found.front());
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

double store_time_s(const std::string& text) {
  std::tm parts{};
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%a, %d %b %Y %H:%M:%S"}) {
    const char* rest = ::strptime(text.c_str(), form, &parts);
    if (rest == nullptr) continue;
    const auto time_s = static_cast<double>(::timegm(&parts));
    rest += std::strcspn(rest, "+-");
    std::tm ahead{};  // of UTC
    if (*rest == '\0' || ::strptime(rest + 1, "%H:%M", &ahead) == nullptr) return time_s;
    return time_s + (*rest == '+' ? -60.0 : 60.0) * (60 * ahead.tm_hour + ahead.tm_min);
  }
  return 0;
}

}  // namespace tycho
