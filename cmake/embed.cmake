# Writes the files of a folder, byte for byte and in the order of their names, as a source file that
# defines PageFiles() of src/server/page.h. Run by the build:
#   cmake -DFOLDER=src/server/page -DOUT=page_files.cc -P cmake/embed.cmake
cmake_minimum_required(VERSION 3.22)

file(GLOB names RELATIVE ${FOLDER} ${FOLDER}/*)
set(entries "")
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  string(REGEX REPLACE "(..)" "\\\\x\\1" escaped "${hex}")
  string(APPEND entries "    {\"${name}\", {\"${escaped}\", ${bytes}}},\n")
endforeach()

file(WRITE ${OUT} "// Made by cmake/embed.cmake.
#include \"src/server/page.h\"

namespace sluice {

std::span<const PageFile> PageFiles() {
  static constexpr PageFile kFiles[] = {
${entries}  };
  return kFiles;
}

}  // namespace sluice
")
