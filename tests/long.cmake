# Tests that take minutes to hours: `scripts/test --long`, in the preset release-test, whose build then has all unit tests
# too (docs/testing.md). Each is a test of CTest like the others, so it is counted with them.
if(WAYMARK_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
endif()

# waymark_long_test(<name> <environment> <command…>)
function(waymark_long_test name environment)
    add_test(NAME long.${name} COMMAND ${ARGN})
    # A filter that no longer names any test is a failure.
    set_tests_properties(long.${name} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT 14400 COST 1000
        FAIL_REGULAR_EXPRESSION "Running 0 tests from")
endfunction()

waymark_long_test(model_classes WAYMARK_PROPERTY_PROGRAMS=10000 pft_test --gtest_filter=*ModelClass*)
waymark_long_test(etm4_model WAYMARK_PROPERTY_PROGRAMS=10000 etm4_test
    --gtest_filter=Everything/Etm4Model*:Filters/Etm4View*:Etm4Sessions*:Everything/Etm4Class*)
if(TARGET etm4_flow_test)
    waymark_long_test(etm4_opencsd "WAYMARK_OPENCSD_ELEMENTS=1000000;WAYMARK_PROPERTY_PROGRAMS=10000" etm4_flow_test
        --gtest_filter=Etm4FlowOpenCsd*)
    # 10,000 damages of each real capture, and every cut: packets, and flow.
    waymark_long_test(etm4_damaged_packets WAYMARK_DAMAGES=10000 etm4_opencsd_test
        --gtest_filter=captures/Etm4Golden.IsRightAgainAfterDamage*)
    waymark_long_test(etm4_damaged_flow WAYMARK_DAMAGES=10000 etm4_flow_test --gtest_filter=captures/Damaged*)
endif()
# 10,000 random programs of an ETMv3 and an MTB, and 10,000 streams of an ITM and an STM; damage and any bytes too.
waymark_long_test(etm3_model WAYMARK_PROPERTY_PROGRAMS=10000 etm3_test --gtest_filter=Etm3Model.Random*:Etm3Reference.*)
waymark_long_test(mtb_model WAYMARK_PROPERTY_PROGRAMS=10000 mtb_test --gtest_filter=MtbDecoder.Gives*:MtbDecoder.All*)
waymark_long_test(itm_model WAYMARK_PROPERTY_PROGRAMS=10000 itm_test --gtest_filter=ItmMessages.*:ItmPackets.OfRandom*)
waymark_long_test(stm_model WAYMARK_PROPERTY_PROGRAMS=10000 stm_test --gtest_filter=StmMessages.*:StmPackets.OfRandom*)
# 10,000 programs of funnel, replicator, trace port, and of whole paths with cross triggers to each kind of sink.
waymark_long_test(sink_paths WAYMARK_PROPERTY_PROGRAMS=10000 sink_test --gtest_filter=*Property*:ScatterList.Names*)
waymark_long_test(account WAYMARK_PROPERTY_PROGRAMS=10000 account_property_test --gtest_filter=Account*)
# 10,000 damages of streams with repeated paths, of streams with speculation, and of streams with cycle counts.
waymark_long_test(etm4_damaged_paths WAYMARK_PROPERTY_PROGRAMS=10000 etm4_test
    --gtest_filter=Etm4Paths.OfDamaged*:Etm4Speculation.AgreeOnDamaged*:Etm4Cycles.AgreeOnDamaged*)
waymark_long_test(ground_truth WAYMARK_PROPERTY_ROUNDS=25 pft_test --gtest_filter=GroundTruth*)
waymark_long_test(call_stacks WAYMARK_PROPERTY_PROGRAMS=10000 analysis_test
    --gtest_filter=FlowPrograms.*:FlowParts.OfSmall*:FlowSources.OfSmall*)
waymark_long_test(perf_damage WAYMARK_PROPERTY_ROUNDS=5000 pipeline_test --gtest_filter=PerfCapture.DamagedFiles)
waymark_long_test(spe_model WAYMARK_PROPERTY_ROUNDS=10000 spe_test --gtest_filter=*Property*)
waymark_long_test(dpu_model WAYMARK_PROPERTY_ROUNDS=10000 dpu_test --gtest_filter=*Property*)
waymark_long_test(dpu_words WAYMARK_PROPERTY_ROUNDS=34 record_test --gtest_filter=DpuWordsProperty.*)
# No wrong program is called proven, and 99 % of the right programs are found; each seed makes other programs.
foreach(seed IN ITEMS 1 4)
    waymark_long_test(pairs_${seed} "WAYMARK_PAIRS=400;WAYMARK_SEED=${seed}" ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_LIST_DIR}/doctor/pairs_test.py $<TARGET_FILE:waymark>)
    set_tests_properties(long.pairs_${seed} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
# Doctor finds the right program for 99 % of bare recordings, in all settings of the unit.
waymark_long_test(settings WAYMARK_RECORDINGS=1000 ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/doctor/settings_test.py
    $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR} $<TARGET_FILE:made_etm4>)
set_tests_properties(long.settings PROPERTIES SKIP_RETURN_CODE 77)
# doctor's word "proven" about bare files is never wrong.
foreach(seed IN ITEMS 1 2)
    waymark_long_test(dumps_${seed} "WAYMARK_DUMPS=200;WAYMARK_SEED=${seed}" ${Python3_EXECUTABLE}
        ${CMAKE_CURRENT_LIST_DIR}/doctor/dumps_test.py $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR})
    set_tests_properties(long.dumps_${seed} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
# Each command's sentence about the run, for each capture; thirty programs of each unit in each language.
waymark_long_test(account_of_captures WAYMARK_ACCOUNT=all ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/golden/account_test.py
    $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR})
waymark_long_test(targets WAYMARK_OPTION_SETS=30 ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/program/targets_test.py
    $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR})
# The words of trust in DPU views: 10,000 programs of each class.
waymark_long_test(dpu_trust "WAYMARK_PROGRAMS=10000" ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/record/dpu_trust_test.py $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR})
# A thousand random trees of merging, for random answers and for recordings with four units; and all faults of a
# cluster.
waymark_long_test(fleet_trees WAYMARK_PROPERTY_ROUNDS=1000 ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/fleet/trees_test.py
    $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR} $<TARGET_FILE:fleet_test>)
waymark_long_test(fleet_faults "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/fleet/slurm_test.py $<TARGET_FILE:waymark>
    ${PROJECT_SOURCE_DIR} all)
set_tests_properties(long.fleet_trees long.fleet_faults PROPERTIES SKIP_RETURN_CODE 77)
# Mutants of every kind of file that commands read; a build with sanitizers is given by hand (docs/testing.md).
waymark_long_test(campaign "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/hostile/campaign_test.py $<TARGET_FILE:waymark>
    ${PROJECT_SOURCE_DIR} --mutants 1000 --seed 1000)
set_tests_properties(long.campaign PROPERTIES SKIP_RETURN_CODE 77)
# A hundred windows of each of seven captures, beside a count of every instruction.
waymark_long_test(serve "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/serve/serve_test.py $<TARGET_FILE:waymark>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/web --long)
set_tests_properties(long.serve PROPERTIES SKIP_RETURN_CODE 77)
# Time, memory and output while dimensions of large inputs are doubled.
waymark_long_test(growth "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/hostile/growth_test.py $<TARGET_FILE:waymark>
    ${PROJECT_SOURCE_DIR} --long)
set_tests_properties(long.growth PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
# Each command that writes, with each of its system calls failing.
waymark_long_test(writers "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/hostile/writers_test.py $<TARGET_FILE:waymark>
    ${PROJECT_SOURCE_DIR} --all)
set_tests_properties(long.writers PROPERTIES SKIP_RETURN_CODE 77)
# The mutants of seven folders are compiled in at once, so each half is built once.
waymark_long_test(mutation_decoders "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/mutation/campaign.py
    --build ${PROJECT_BINARY_DIR}/mutation-decoders isa coresight spe pft etm4 dpu follow)
waymark_long_test(mutation_captures "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/mutation/campaign.py
    --build ${PROJECT_BINARY_DIR}/mutation-captures capture pipeline answers analysis image exports record)
set_tests_properties(long.mutation_decoders long.mutation_captures PROPERTIES TIMEOUT 86400)
# The toy protocol in a copy of the tree: built, decoded, identified, recorded and verified.
waymark_long_test(toy "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/toy/toy_test.py ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR}/toy -G ${CMAKE_GENERATOR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1
    -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DWAYMARK_WERROR=ON)
set_tests_properties(long.toy PROPERTIES SKIP_RETURN_CODE 77)
waymark_long_test(tidy "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/tidy_test.py ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR}/tidy)
set_tests_properties(long.tidy PROPERTIES SKIP_RETURN_CODE 77)
# Each example with each way to program the unit on each core.
waymark_long_test(examples WAYMARK_EXAMPLES=all ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/record/examples_test.py
    $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR})
set_tests_properties(long.examples PROPERTIES SKIP_RETURN_CODE 77)
# Programs of Debian for arm64, which apt downloads; without a mirror it is skipped.
waymark_long_test(debian "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/record/debian_test.py $<TARGET_FILE:waymark>
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/debian-arm64)
set_tests_properties(long.debian PROPERTIES SKIP_RETURN_CODE 77)
# Debian 13's lcov, and programs of Debian's sources, which apt downloads; without a mirror they are skipped.
waymark_long_test(lcov "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/exports/coverage_test.py $<TARGET_FILE:waymark>
    ${PROJECT_SOURCE_DIR} --lcov ${PROJECT_BINARY_DIR}/lcov)
waymark_long_test(pgo_programs "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/exports/pgo_programs_test.py
    $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/pgo-programs)
set_tests_properties(long.lcov long.pgo_programs PROPERTIES SKIP_RETURN_CODE 77)
# Pages of all headers and guides, without a warning and without broken links.
waymark_long_test(docs "" ${PROJECT_SOURCE_DIR}/scripts/docs)
# Debian packages, built twice and compared, in a new Debian 12; without root and a mirror it is skipped.
waymark_long_test(packages "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/package/installed_test.py
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/packages)
set_tests_properties(long.packages PROPERTIES SKIP_RETURN_CODE 77)
# The same cross-built for arm64, and the program's tests under qemu-aarch64. After the other: both write build/packages.
waymark_long_test(packages_arm64 "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/package/arm64_test.py
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/packages-arm64)
set_tests_properties(long.packages_arm64 PROPERTIES SKIP_RETURN_CODE 77 DEPENDS long.packages)
# 1,000 random ranges of the timeline on a page.
waymark_long_test(report_ranges "" ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/report/closer_test.py
    $<TARGET_FILE:waymark> ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/web --long)
set_tests_properties(long.report_ranges PROPERTIES SKIP_RETURN_CODE 77)
