include(GNUInstallDirs)

# The pkg-config file finds its prefix from its own place, so that cmake --install --prefix works.
file(RELATIVE_PATH MLX_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/mlxc.pc.in" "${MLX_GENERATED}/mlxc.pc" @ONLY)
install(TARGETS mlxc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET mlx)
    install(TARGETS mlx RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES "${PROJECT_BINARY_DIR}/libmlxc.a" DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES "${MLX_GENERATED}/mlxc.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/mlx" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
