// How much of some memory is in RAM: mapped files lose pages when memory is
// short, and each that is read again is a page fault that waits for the disk.
// Any thread; never for every token.
#ifndef SLUICE_SRC_MACHINE_RESIDENCY_H_
#define SLUICE_SRC_MACHINE_RESIDENCY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

// Share of these bytes that is in RAM, 0..1; 1 where there are none or the system does not say
// (of files that the process may not write, Linux says that all is there). Of much memory a sample
// is looked at, 64 MB in pieces of 1 MB spread evenly: a few ms at most.
double ResidentShare(std::span<const std::span<const uint8_t>> memory);

// What a system tells about one piece of memory: bytes of [data, data + size) in RAM.
size_t ResidentBytes(const uint8_t* data, size_t size);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_RESIDENCY_H_
