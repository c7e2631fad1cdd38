// What the pictures of sluice have in common: their colours, light and dark, and text in markup.
#ifndef SLUICE_CLI_SVG_H_
#define SLUICE_CLI_SVG_H_

#include <cstddef>
#include <string>

namespace sluice {

constexpr size_t kSvgColours = 6;  // series beyond share them again

// Classes page, text, soft, grid, axis; s0, s1 ... lines of a series, f0, f1 ... its areas and
// text. No CSS variables: some renderers (librsvg) do not know them.
std::string SvgStyle();

// Text between tags, of SVG and HTML.
std::string MarkupText(const std::string& text);

}  // namespace sluice
#endif  // SLUICE_CLI_SVG_H_
