dnl SPDX-License-Identifier: Apache-2.0

dnl SBX_WARN(FLAG): adds FLAG to SBX_CFLAGS when the compiler knows it.
AC_DEFUN([SBX_WARN], [
	AS_VAR_PUSHDEF([cv], [sbx_cv_warn_$1])
	AC_CACHE_CHECK([whether $CC accepts $1], [cv], [
		sbx_saved_cflags=$CFLAGS
		CFLAGS="$CFLAGS -Werror $1"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([cv], [yes])], [AS_VAR_SET([cv], [no])])
		CFLAGS=$sbx_saved_cflags])
	AS_VAR_IF([cv], [yes], [SBX_CFLAGS="$SBX_CFLAGS $1"])
	AS_VAR_POPDEF([cv])])

AC_DEFUN([SBX_WARNINGS], [
	SBX_CFLAGS="-std=gnu11 -fno-strict-aliasing -fstack-protector-strong -fno-common"
	m4_foreach_w([w], [-Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes
		-Wcast-function-type -Wundef -Wimplicit-fallthrough -Wformat=2 -Wwrite-strings
		-Wno-unused-parameter -Wno-missing-field-initializers -Wno-format-nonliteral
		-Wthread-safety -Wthread-safety-beta],
		[SBX_WARN(w)])])

AC_DEFUN([SBX_SANITIZERS], [
	AC_ARG_ENABLE([sanitizers],
		[AS_HELP_STRING([--enable-sanitizers@<:@=LIST@:>@], [build with sanitizers (address,undefined)])],
		[], [enable_sanitizers=no])
	AS_IF([test "x$enable_sanitizers" = xyes], [enable_sanitizers=address,undefined])
	AS_IF([test "x$enable_sanitizers" != xno], [
		SBX_CFLAGS="$SBX_CFLAGS -fsanitize=$enable_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=all"
		SBX_LDFLAGS="$SBX_LDFLAGS -fsanitize=$enable_sanitizers"
		AC_DEFINE([SBX_SANITIZED], [1], [Built with sanitizers: wider host filters, not for production])])
	AM_CONDITIONAL([SANITIZED], [test "x$enable_sanitizers" != xno])])

AC_DEFUN([SBX_FUZZ], [
	AC_ARG_ENABLE([fuzz], [AS_HELP_STRING([--enable-fuzz], [link the fuzzers with libFuzzer (clang)])],
		[], [enable_fuzz=no])
	AS_IF([test "x$enable_fuzz" = xyes], [
		SBX_CFLAGS="$SBX_CFLAGS -fsanitize=fuzzer-no-link"
		FUZZ_LDFLAGS="-fsanitize=fuzzer"])
	AC_SUBST([FUZZ_LDFLAGS])
	AM_CONDITIONAL([FUZZ], [test "x$enable_fuzz" = xyes])])

AC_DEFUN([SBX_COVERAGE], [
	AC_ARG_ENABLE([coverage], [AS_HELP_STRING([--enable-coverage], [build with gcov counters])],
		[], [enable_coverage=no])
	AS_IF([test "x$enable_coverage" = xyes], [
		SBX_CFLAGS="$SBX_CFLAGS --coverage"
		SBX_LDFLAGS="$SBX_LDFLAGS --coverage"])])

dnl The programs are started once a sandbox: what ld.so does costs more than they do. STATIC_LDFLAGS links them as one piece
dnl that is still placed at random, where the static libraries are installed; base/entry.c tells of sbx_entry.
AC_DEFUN([SBX_STATIC], [
	AC_ARG_ENABLE([static-programs],
		[AS_HELP_STRING([--disable-static-programs], [link the programs dynamically (slower to start)])],
		[], [enable_static_programs=auto])
	AS_IF([test "x$enable_sanitizers" != xno || test "x$enable_fuzz" != xno], [enable_static_programs=no])
	AS_IF([test "x$enable_static_programs" != xno], [
		AC_MSG_CHECKING([whether the programs can be linked statically])
		sbx_saved_libs=$LIBS
		sbx_saved_ldflags=$LDFLAGS
		LIBS="$CAP_LIBS $JANSSON_LIBS $PROTOBUF_C_LIBS $LIBS"
		LDFLAGS="$LDFLAGS -static-pie"
		AC_LINK_IFELSE([AC_LANG_PROGRAM([[
			#include <jansson.h>
			#include <protobuf-c/protobuf-c.h>
			#include <sys/capability.h>
			static const char *const strings[] = { "a", "b" };]], [[
			const char *volatile *p = (const char *volatile *)strings;
			return !protobuf_c_version() || !json_null() || cap_free(cap_init()) || !*p;]])],
			[sbx_static=yes], [sbx_static=no])
		LIBS=$sbx_saved_libs
		LDFLAGS=$sbx_saved_ldflags
		AC_MSG_RESULT([$sbx_static])
		AS_IF([test "x$sbx_static" = xyes], [STATIC_LDFLAGS="-static-pie -Wl,-e,sbx_entry"],
			[test "x$enable_static_programs" = xyes],
			[AC_MSG_ERROR([static libraries of libcap, jansson, protobuf-c and libc are needed])])
		enable_static_programs=$sbx_static])
	AC_SUBST([STATIC_LDFLAGS])])
