// What happens when a mapped file loses bytes while it is in use (another program shortens it, the
// disk fails, a network share goes away): the kernel answers the next touch with SIGBUS, inside
// whatever was computing. There is no way back into that code, so the process ends; with this
// handler it first says which file it was.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fathom {

// Installs the handler. Called by load_model before it opens anything; again is harmless. The
// process then leaves with exit code 1 and a line on stderr. A SIGBUS outside of any MappedFile
// keeps its default effect.
void explain_mapping_faults();

// Exit code of a process that ended that way.
inline constexpr int kMappingFaultExitCode = 1;

// The files the handler knows. Called by MappedFile; 256 are remembered at a time, more stay
// nameless.
void remember_mapping(std::span<const std::byte> mapping, const std::string& path);
void forget_mapping(const std::byte* begin);

}  // namespace fathom
