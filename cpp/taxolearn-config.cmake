# find_package(taxolearn): the target taxolearn::taxolearn.
include(CMakeFindDependencyMacro)
find_dependency(Eigen3 3.4 CONFIG)
find_dependency(OpenMP COMPONENTS CXX)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/taxolearn-targets.cmake")
