# airloxfs: build, test, install.  V=1 shows the commands.
#
#   make            build everything into build/
#   make demo       two mounts, a relay, a file that crosses, step by step
#   make check      every test: plain, ASan+UBSan, TSan, fuzz seeds
#   make vectors    the conformance vectors (V=FILE for another file)
#   make install    PREFIX=/usr/local DESTDIR=

VERSION := 0.1.0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/airloxfs

comma := ,
# One directory a kind of build: SAN=address,undefined or SAN=thread.
B ?= build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
CC ?= cc
PKGCONF := pkg-config

# Each third-party library and the room that may include it: docs/DESIGN.md.
PKGS := libsodium libcrypto zlib libpng libjpeg libwebpdemux libwebp libcurl libcjson fuse3
PKG_CFLAGS := $(shell $(PKGCONF) --cflags $(PKGS) 2>/dev/null)

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
LIBS_relay := -lsodium -lcrypto -lunistring -lpthread

core_o := $(patsubst %.c,$(B)/%.o,$(wildcard core/*.c))
host_o := $(patsubst %.c,$(B)/%.o,$(wildcard core/host/*.c))
mount_o := $(patsubst %.c,$(B)/%.o,$(wildcard airloxfs/*.c airloxfs/cmd/*.c))
relay_o := $(patsubst %.c,$(B)/%.o,$(wildcard relay/*.c))
unit_bin := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/*.c))
helper_bin := $(patsubst tests/hostile/%.c,$(B)/tests/hostile/%,$(wildcard tests/hostile/*.c))

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2);)

all: $(B)/airloxfs $(B)/airlox-relay

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS) -c -o $@ $<

$(B)/libcore.a: $(core_o)
	@rm -f $@
	$(call say,AR,$@)ar rcs $@ $^
$(B)/libhost.a: $(host_o)
	@rm -f $@
	$(call say,AR,$@)ar rcs $@ $^

# The linker takes from libcore.a only what is called: decryption is not
# linked into the relay, and `make arrows` looks.
$(B)/airlox-relay: $(relay_o) $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_relay)
$(B)/airloxfs: $(mount_o) $(B)/libhost.a $(B)/libcore.a
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_airloxfs)

# A unit test stands on the libraries; one of the relay's rooms includes
# the .c it tests.
$(B)/tests/%: $(B)/tests/%.o $(B)/libhost.a $(B)/libcore.a
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_airloxfs)
.PRECIOUS: $(B)/%.o

tests: all $(unit_bin) $(helper_bin)

vectors: $(B)/tests/unit/vectors
	$(Q)$< $(if $(filter-out 1,$(V)),$(V),vectors/*.json)

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.PHONY: all tests vectors clean
