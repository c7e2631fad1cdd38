// machine.json in the cache folder: what was measured on this machine, in
// sections ("profiles", "ceilings"), each a list of entries with a key that says
// which machines may share it. Used by machine_profile and ceilings; any thread.
// Two processes that write at once: the file stays whole, one of the two is lost.
#ifndef SLUICE_SRC_MACHINE_PROFILE_FILE_H_
#define SLUICE_SRC_MACHINE_PROFILE_FILE_H_

#include <boost/json.hpp>
#include <string>

#include "src/base/status.h"

namespace sluice {

// $SLUICE_CACHE/machine.json.
Result<std::string> MachineFilePath();

// The entry of a section. kNotFound: no file, or no such entry in it; kCorrupt: no such file.
Result<boost::json::object> ReadMachineEntry(const std::string& path, const char* section,
                                             const std::string& key);
// Adds or replaces the entry with entry["key"]; other sections stay, the oldest entries go when
// there are many. A corrupt file is replaced.
Status WriteMachineEntry(const std::string& path, const char* section, boost::json::object entry);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_PROFILE_FILE_H_
