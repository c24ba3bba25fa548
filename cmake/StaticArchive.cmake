# libmlxc.a holds a single object: everything linked together, with all internal (hidden) symbols
# made local. The short internal names can then never clash with names of the program.

set(merged "${PROJECT_BINARY_DIR}/mlxc_merged.o")
set(archive "${PROJECT_BINARY_DIR}/libmlxc.a")
add_custom_command(OUTPUT "${archive}"
    COMMAND ${CMAKE_LINKER} -r -o "${merged}" "$<TARGET_OBJECTS:mlx_objs>"
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden "${merged}"
    COMMAND ${CMAKE_COMMAND} -E rm -f "${archive}"
    COMMAND ${CMAKE_AR} rcs "${archive}" "${merged}"
    COMMAND ${CMAKE_COMMAND} -E rm -f "${merged}"
    DEPENDS mlx_objs "$<TARGET_OBJECTS:mlx_objs>"
    COMMENT "Packing libmlxc.a"
    COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(mlxc_static ALL DEPENDS "${archive}")
