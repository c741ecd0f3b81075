# The only build file. `make` builds build/cairn; `make test` is the README's test command; V=asan|tsan|debug are variants.
MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/bash
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
V ?= release
B ?= build/$(V)

PURE := $(shell awk '$$2 == "pure" { print $$1 }' src/LAYERS)
EFFECT := $(shell awk '$$2 == "effect" { print $$1 }' src/LAYERS)
MODULES ?= $(PURE) $(EFFECT)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
  -Wundef -Wcast-qual -Wpointer-arith -Wwrite-strings -Wformat=2 -Wswitch-enum -Wnull-dereference -Wdouble-promotion \
  -Wredundant-decls -Wdate-time -Werror=format-security -Werror=implicit-function-declaration
ifeq ($(CC),gcc)
WARN += -Wlogical-op -Wduplicated-cond -Wduplicated-branches
endif
ifdef WERROR
WARN += -Werror
endif
# Of the debugger's tables the tests need the lines alone.
DEBUG_INFO := $(if $(filter test,$(V)),-g1,-g)
COMMON := -fno-common -fvisibility=hidden -ffp-contract=off -fno-strict-aliasing -fno-delete-null-pointer-checks $(DEBUG_INFO) -Isrc -Iinclude -I$(B)/gen
HARDEN := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
LDHARDEN := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code
# -fPIC, so that the library is made of the same objects: with hidden names and an executable's link it costs nothing.
OPT_release := -O2 $(HARDEN) -fPIC
LD_release := $(LDHARDEN)
OPT_debug := -O0 -DCAIRN_VERIFY -DCAIRN_FAULTS
OPT_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -DCAIRN_ARENA_SINGLE -DCAIRN_VERIFY -DCAIRN_FAULTS
LD_asan := -fsanitize=address,undefined
OPT_tsan := -O1 -fsanitize=thread -DCAIRN_VERIFY -DCAIRN_FAULTS
LD_tsan := -fsanitize=thread
# test: what the test binaries link: optimised, with verification and fault seams on. Two hundred programs are linked, and more with
# planted bugs: by the faster linker.
OPT_test := -O1 -DCAIRN_VERIFY -DCAIRN_FAULTS
LD_test := $(if $(shell command -v ld.lld),-fuse-ld=lld)
CFLAGS_PURE := -std=c17
CFLAGS_EFFECT := -std=gnu17 -D_GNU_SOURCE
CFLAGS := $(WARN) $(COMMON) $(OPT_$(V)) $(EXTRA)
LDFLAGS := $(LD_$(V)) $(EXTRA_LD)
LIBS := -lsqlite3 -lyaml -lssl -lcrypto -lz -lpthread -lm

# Quiet unless VERBOSE=1.
SAY = $(if $(VERBOSE),,@echo "  $(if $(filter %.o,$@),CC,LD) $@";)

include $(wildcard mk/*.mk)
