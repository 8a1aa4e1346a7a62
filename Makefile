# airloxfs: build, test, install.  V=1 shows the commands.
#
#   make            build everything into build/
#   make demo       two mounts, a relay, a file that crosses, step by step
#   make check      every test: plain, ASan+UBSan, TSan, fuzz seeds
#   make bench      speed, each number beside one of another program's
#   make soak       random kills for N=20 minutes, and items of 1 GiB
#   make vectors    the conformance vectors (V=FILE for another file)
#   make arrows     who may include whom, and what the relay must not hold
#   make static     the relay as one static file: build/static/airlox-relay
#   make deps       install what building needs (Debian; asks for root)
#   make install    PREFIX=/usr/local DESTDIR=

VERSION := 0.1.0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/airloxfs
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
UNITDIR ?= $(PREFIX)/lib/systemd

comma := ,
# One directory a kind of build: SAN=address,undefined or SAN=thread.
B ?= build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
CC ?= cc
PKGCONF := pkg-config

# Each third-party library and the room that may include it: docs/DESIGN.md.
PKGS := libsodium libcrypto zlib libpng libjpeg libwebpdemux libwebp libcurl libcjson fuse3 \
	yaml-0.1
PKG_CFLAGS := $(shell $(PKGCONF) --cflags $(PKGS) 2>/dev/null)

# A machine without the packages should hear it in one sentence.
ifneq ($(filter-out deps demo check bench clean uninstall fuzz-seeds,\
	$(or $(MAKECMDGOALS),all)),)
missing := $(shell for p in $(PKGS) libseccomp; do \
	$(PKGCONF) --exists $$p 2>/dev/null || echo $$p; done)
$(if $(strip $(missing)),$(error not installed: $(missing); try: make deps))
endif

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wformat=2 -Wvla -Wswitch-enum -Wconversion \
	-Wno-sign-conversion
OPT ?= -O2 -g
HARD := -fstack-protector-strong -fPIE $(if $(SAN),,-D_FORTIFY_SOURCE=2)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
	-fno-sanitize-recover=all)
override CFLAGS += -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. \
	-DAIRLOX_VERSION='"$(VERSION)"' $(WARN) $(OPT) $(HARD) $(SANFLAGS) \
	$(PKG_CFLAGS) -MMD -MP
override LDFLAGS += -pie -Wl,-z,relro,-z,now $(SANFLAGS)

LIBS_core := -lsodium -lcrypto -lpng -ljpeg -lwebpdemux -lwebp -lz -lunistring
LIBS_airloxfs := -lcurl -lcjson -lfuse3 -lseccomp $(LIBS_core) -lpthread
LIBS_tests := -lssl $(LIBS_airloxfs)
LIBS_relay := -lssl -lsodium -lcrypto -lunistring -lpthread
LIBS_runner := -lseccomp -lunistring
LIBS_box := -lyaml -lseccomp -lssl -lsodium -lcrypto -lunistring -lpthread

core_o := $(patsubst %.c,$(B)/obj/%.o,$(wildcard core/*.c))
host_o := $(patsubst %.c,$(B)/obj/%.o,$(wildcard core/host/*.c))
mount_o := $(patsubst %.c,$(B)/obj/%.o,$(wildcard airloxfs/*.c airloxfs/cmd/*.c))
relay_o := $(patsubst %.c,$(B)/obj/%.o,$(wildcard relay/*.c))
box_o := $(patsubst %.c,$(B)/obj/%.o,$(wildcard runner/policy/*.c runner/broker/*.c runner/record/*.c \
	runner/agent/*.c runner/hand/*.c runner/box/*.c runner/sandbox/*.c) runner/site.c runner/run.c)
runner_o := $(patsubst %.c,$(B)/obj/%.o,$(wildcard runner/*.c runner/sandbox/*.c \
	runner/runtime/*.c runner/queue/*.c) runner/box/doors.c)
unit_bin := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/*.c))
helper_bin := $(patsubst tests/hostile/%.c,$(B)/tests/hostile/%,$(wildcard tests/hostile/*.c))
bench_bin := $(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(wildcard tests/bench/*.c))

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2);)

all: $(B)/airloxfs $(B)/airlox-relay $(B)/airlox-runner $(B)/airlox-box

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS) -c -o $@ $<

$(B)/libcore.a: $(core_o)
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)ar rcs $@ $^
$(B)/libhost.a: $(host_o)
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)ar rcs $@ $^

# The linker takes from libcore.a only what is called: decryption is not
# linked into the relay, and `make arrows` looks.
$(B)/airlox-relay: $(relay_o) $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_relay)
$(B)/airloxfs: $(mount_o) $(B)/libhost.a $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_airloxfs)

$(B)/airlox-runner: $(runner_o) $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_runner)
$(B)/obj/runner/record/page.o: runner/record/page.css runner/record/page.js
$(B)/airlox-box: $(box_o) $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_box)

# One file that needs nothing of the system it runs on: deploy/Dockerfile.
# glibc warns that getpwnam and host names want its shared libraries: --user
# and a name in --listen are for the other build.
$(B)/static/airlox-relay: $(relay_o) $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -static-pie -Wl,--no-warnings $(filter-out -pie,$(LDFLAGS)) \
		-o $@ $^ $(LIBS_relay)
static: $(B)/static/airlox-relay

# A unit test stands on the libraries; the rooms of the programs, but for
# their mains, are libraries to it as well.
$(B)/librelay.a: $(filter-out %/main.o,$(relay_o))
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)ar rcs $@ $^
$(B)/libmount.a: $(filter-out %/main.o,$(mount_o))
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)ar rcs $@ $^
# The relay has names of its own for what the box has too, so a test of the
# box, box_NAME, is linked with the box alone.
$(B)/libbox.a: $(filter-out %/main.o,$(box_o))
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)ar rcs $@ $^
$(B)/tests/unit/box_%: $(B)/obj/tests/unit/box_%.o $(B)/libbox.a $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_box)
# So is one of the runner, runner_NAME.
$(B)/librunner.a: $(filter-out %/main.o,$(runner_o))
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)ar rcs $@ $^
$(B)/tests/unit/runner_%: $(B)/obj/tests/unit/runner_%.o $(B)/librunner.a $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_runner)
test_libs := $(B)/librelay.a $(B)/libmount.a $(B)/libhost.a $(B)/libcore.a
$(B)/tests/%: $(B)/obj/tests/%.o $(test_libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_tests)
.PRECIOUS: $(B)/obj/%.o

# Preloaded into a program under test.
preload_so := $(patsubst tests/hostile/preload/%.c,$(B)/tests/hostile/%.so,\
	$(wildcard tests/hostile/preload/*.c))
$(B)/tests/hostile/%.so: tests/hostile/preload/%.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O1 -g -fPIC -shared \
		-o $@ $< -ldl

tests: all $(unit_bin) $(helper_bin) $(preload_so) $(if $(SAN),,static)

# Building and testing for those who have just come: install what is
# missing, build, go.  `make all` alone never installs anything.
deps:
	$(Q).ci/deps build
demo:
	$(Q).ci/deps demo
	$(Q)$(MAKE) --no-print-directory -j2 all
	$(Q)tests/demo.sh $(B)
check:
	$(Q).ci/deps check
	$(Q)tests/check
# One table at the end; F=WORD for the rows whose file has it in its name.
bench-bin: all $(bench_bin) $(B)/tests/hostile/sealer $(B)/tests/hostile/crowd
bench:
	$(Q).ci/deps bench
	$(Q)$(MAKE) --no-print-directory -j2 bench-bin
	$(Q)tests/bench/run --build $(B) $(if $(F),--filter $(F))

N ?= 20
soak: tests bench-bin
	$(Q)tests/soak.sh $(N)

arrows: all
	$(Q)tests/arrows $(B)

# The fuzzers are clang's, in a build of their own.
fuzz_bin := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%,$(wildcard tests/fuzz/*.c))
$(B)/tests/fuzz/%: $(B)/obj/tests/fuzz/%.o $(test_libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LIBS_tests)
$(B)/tests/fuzz/box_%: $(B)/obj/tests/fuzz/box_%.o $(B)/libbox.a $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LIBS_box)
$(B)/tests/fuzz/runner_%: $(B)/obj/tests/fuzz/runner_%.o $(B)/librunner.a $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LIBS_runner)
fuzz-bin: $(fuzz_bin)
fuzz:
	$(Q)$(MAKE) --no-print-directory B=build/fuzz CC=clang OPT='-O1 -g -Wno-error' \
		SAN=address,undefined,fuzzer-no-link fuzz-bin
# Each seed once, then SECONDS of search.
SECONDS ?= 0
fuzz-seeds: fuzz
	$(Q)tests/fuzz/run build/fuzz/tests/fuzz $(SECONDS)

vectors: $(B)/tests/unit/vectors
	$(Q)$< $(if $(filter-out 1,$(V)),$(V),vectors/*.json)

# put FILES,DIR[,MODE]: nothing to do where nothing is.
put = $(if $(1),install -d $(DESTDIR)$(2) && \
	install -m $(or $(3),644) $(1) $(DESTDIR)$(2)/,:)
# put_unit NAME,DIR: a unit that names where the program is.
put_unit = install -d $(DESTDIR)$(UNITDIR)/$(2) && sed 's|/usr/local/bin|$(BINDIR)|' \
	systemd/$(1) >$(DESTDIR)$(UNITDIR)/$(2)/$(1) && \
	chmod 644 $(DESTDIR)$(UNITDIR)/$(2)/$(1)
man_sections := $(sort $(patsubst .%,%,$(suffix $(wildcard man/*.[1-9]))))
programs := $(B)/airloxfs $(B)/airlox-relay $(B)/airlox-runner $(B)/airlox-box
install: all
	$(Q)$(call put,$(programs),$(BINDIR),755)
	$(Q)$(foreach s,$(man_sections),$(call put,$(wildcard man/*.$(s)),$(MANDIR)/man$(s)) &&) :
	$(Q)$(call put,$(wildcard README.md LICENSE NEWS docs/*.md docs/*.sh),$(DOCDIR))
	$(Q)$(call put,$(wildcard docs/policy/*.yaml),$(DOCDIR)/policy)
	$(Q)$(call put_unit,airloxfs@.service,user) && \
		$(call put_unit,airlox-relay.service,system) && \
		$(call put_unit,airlox-relay.socket,system) && \
		$(call put_unit,airlox-runner@.service,system)
	$(Q)$(call put,$(wildcard completion/_*),$(ZSHDIR))
	$(Q)$(call put,$(wildcard completion/*.fish),$(FISHDIR))
	$(Q)$(foreach f,$(wildcard completion/*.bash),\
		install -D -m 644 $(f) $(DESTDIR)$(BASHDIR)/$(basename $(notdir $(f))) &&) :

uninstall:
	$(Q)cd $(DESTDIR)/ && rm -f $(patsubst %,.$(BINDIR)/%,$(notdir $(programs))) \
		$(foreach f,$(wildcard man/*.[1-9]),.$(MANDIR)/man$(patsubst .%,%,$(suffix $(f)))/$(notdir $(f))) \
		.$(UNITDIR)/user/airloxfs@.service .$(UNITDIR)/system/airlox-relay.service .$(UNITDIR)/system/airlox-relay.socket \
		.$(UNITDIR)/system/airlox-runner@.service \
		$(patsubst %,.$(ZSHDIR)/%,$(notdir $(wildcard completion/_*))) \
		$(patsubst %,.$(FISHDIR)/%,$(notdir $(wildcard completion/*.fish))) \
		$(patsubst %,.$(BASHDIR)/%,$(basename $(notdir $(wildcard completion/*.bash))))
	$(Q)rm -rf $(DESTDIR)$(DOCDIR)

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: all static tests deps demo check soak bench bench-bin arrows fuzz fuzz-bin \
	fuzz-seeds vectors install uninstall clean
