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

dnl SBX_STATIC: programs of the product are linked statically where that works: the dynamic linker would be a good part of
dnl the time that a sandbox takes to start.
AC_DEFUN([SBX_STATIC], [
	AC_ARG_ENABLE([static-programs],
		[AS_HELP_STRING([--disable-static-programs], [link with shared libraries])],
		[], [enable_static_programs=yes])
	STATIC_LDFLAGS=
	AS_IF([test "x$enable_static_programs" = xyes && test "x$enable_sanitizers" = xno], [
		AC_CACHE_CHECK([whether programs can be linked statically], [sbx_cv_static_pie], [
			sbx_saved_ldflags=$LDFLAGS sbx_saved_libs=$LIBS
			LDFLAGS="$LDFLAGS -static-pie"
			LIBS="$JANSSON_LIBS $PROTOBUF_C_LIBS $CAP_LIBS $SECCOMP_LIBS $LIBS"
			AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <jansson.h>
				#include <seccomp.h>
				#include <protobuf-c/protobuf-c.h>
				#include <sys/capability.h>]],
				[[return json_object() && seccomp_init(0) && cap_init() && protobuf_c_version();]])],
				[sbx_cv_static_pie=yes], [sbx_cv_static_pie=no])
			LDFLAGS=$sbx_saved_ldflags LIBS=$sbx_saved_libs])
		AS_IF([test "x$sbx_cv_static_pie" = xyes], [STATIC_LDFLAGS=-static-pie])])
	AC_SUBST([STATIC_LDFLAGS])])
