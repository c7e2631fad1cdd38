# Fails where a file includes what its folder must not see (HACKING.md, "The
# house"). Run by every build and by .ci/run: cmake -P cmake/check_includes.cmake
cmake_minimum_required(VERSION 3.22)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)

# Bottom first: a layer includes itself and what stands before it.
set(layers simd quant src/base src/machine src/file src/text src/model src/engine src/server src/load cli)
# Not even the layers below: our own code depends on nothing there.
set(alone_src/base simd quant)
# The load client knows servers by their APIs only.
set(alone_src/load simd quant src/machine src/file src/text src/model src/engine src/server)

function(complain file text)
  file(RELATIVE_PATH file ${root} ${file})
  message(SEND_ERROR "${file}: ${text}")
endfunction()

set(above ${layers} tests bench)
foreach(layer IN LISTS layers)
  list(REMOVE_ITEM above ${layer})
  file(GLOB_RECURSE files ${root}/${layer}/*.h ${root}/${layer}/*.cc)
  foreach(file IN LISTS files)
    file(STRINGS ${file} lines REGEX "^[ \t]*#[ \t]*include")
    foreach(line IN LISTS lines)
      foreach(up IN LISTS above alone_${layer})
        if(line MATCHES "\"${up}/")
          complain(${file} "${layer} must not see ${up}: ${line}")
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()

# rule(PATTERN ALLOWED TEXT): lines that match PATTERN stand only in files whose path matches ALLOWED.
function(rule pattern allowed text)
  file(GLOB_RECURSE files ${root}/simd/* ${root}/quant/* ${root}/src/* ${root}/cli/* ${root}/bench/* ${root}/tests/*.cc)
  foreach(file IN LISTS files)
    file(RELATIVE_PATH path ${root} ${file})
    if(path MATCHES "\\.(h|cc)$" AND NOT path MATCHES "${allowed}")
      file(STRINGS ${file} lines REGEX "${pattern}")
      foreach(line IN LISTS lines)
        if(NOT line MATCHES "^[ \t]*//")
          complain(${file} "${text}: ${line}")
        endif()
      endforeach()
    endif()
  endforeach()
endfunction()

rule("foreach_target\\.h|-inl\\.h" "^(simd|quant)/"
  "only simd/ and quant/ are compiled once per SIMD target")
rule("(->|\\.)matmul\\(" "^(quant|tests|bench)/|^src/model/ops\\.cc|^src/machine/"
  "only src/model/ops.cc calls a format's kernel")
rule("[^A-Za-z](RmsNorm|LayerNorm|SiluMul|GeluTanhMul|GeluErfMul|ReluMul|ClampedSwiGlu|RopeHalves|RopeAdjacent|QuantiseRow)\\("
  "^(simd|quant|tests|bench)/|^src/model/ops\\.cc|^src/machine/"
  "only src/model/ops.cc calls the row kernels")
rule("include <(sys/mman|sched|hwloc|numa|numaif|sys/sysinfo|pthread|omp)\\.h>"
  "^(src/machine|tests|bench)/|^src/base/(mapped_file|memory_lock|arena)\\.cc"
  "only src/machine and src/base/{mapped_file,memory_lock,arena}.cc ask the system about cores and memory")
rule("\"(blk\\.|token_embd|output_norm|[a-z_%]*\\.attention\\.)" "^(src/file|tests|bench)/|^src/model/(arch/|binder|config_reader)"
  "only the architectures, the binder and src/file know tensor names and model keys")
rule("\"tokenizer\\." "^(src/text|src/file|tests|bench)/"
  "only src/text knows the tokenizer's keys")
