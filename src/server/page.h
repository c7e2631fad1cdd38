// The page at `/` for people with a browser: files of src/server/page/, built
// into the program, and nothing from anywhere else. Called once, when the server
// starts; its handlers run on the I/O thread.
#ifndef SLUICE_SRC_SERVER_PAGE_H_
#define SLUICE_SRC_SERVER_PAGE_H_

#include <span>
#include <string_view>
#include <vector>

#include "src/server/http_server.h"

namespace sluice {

struct PageFile {
  std::string_view name;  // "app.js"
  std::string_view bytes;
};

// The files, by name; made by cmake/embed.cmake.
std::span<const PageFile> PageFiles();

// Whether an Accept header asks for a web page by name, as browsers do: "text/html", not refused by
// q=0. "*/*" (curl) and nothing do not (RFC 9110, section 12.5.1).
bool WantsPage(std::string_view accept);

// These routes, with the page in front of what answers GET / (which goes on answering those that do
// not want a page) and its files at /page/NAME. Open to all: the page asks for a key itself.
std::vector<Route> WithPage(std::vector<Route> routes);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_PAGE_H_
