# SPDX-License-Identifier: Apache-2.0
# A C project: compiler, assembler, linker, libraries and a parallel make.
. "$(dirname "$0")/lib.sh"
needs gcc make || { skip build "no compiler"; finish; }
export CCACHE_DISABLE=1
seed=$scratch/seed
mkdir "$seed"
i=1
while [ $i -le 28 ]; do
	printf '#include "all.h"\nint f%d(int x)\n{\n\treturn x * %d + %s;\n}\n' $i $i "$([ $i -gt 1 ] && echo "f$((i - 1))(x)" || echo 1)" >"$seed/f$i.c"
	echo "int f$i(int x);" >>"$seed/all.h"
	i=$((i + 1))
done
cat >"$seed/main.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include "all.h"
int main(int argc, char **argv)
{
	printf("%d\n", f28(argc > 1 ? atoi(argv[1]) : 1));
	return 0;
}
END
printf '%s\n' 'OBJS = $(patsubst %.c,%.o,$(wildcard f*.c))' 'CFLAGS = -O1 -g -fPIC' 'all: main-static main-shared' \
	'libf.a: $(OBJS)' '	ar rcs $@ $^' 'libf.so: $(OBJS)' '	gcc -shared -o $@ $^' 'main-static: main.o libf.a' '	gcc -o $@ main.o libf.a' \
	'main-shared: main.o libf.so' '	gcc -o $@ main.o -L. -lf -Wl,-rpath,"$$PWD"' '$(OBJS) main.o: all.h' 'test: all' \
	'	test `./main-static 2` = `./main-shared 2`' 'clean:' '	rm -f *.o *.a *.so main-*' >"$seed/Makefile"
app "make -j2, test, rebuild" <<'END'
export CCACHE_DISABLE=1; make -s -j2 CC=gcc; echo $?; make -s test; echo $?; ./main-static 3; ./main-shared 4; ar t libf.a | wc -l; nm libf.a | grep -c ' T '; ldd main-shared | grep -c libf; make -s CC=gcc -q; echo $?; sleep 0.02; touch f7.c; make CC=gcc -n | grep -c 'gcc.*-c'; ls | wc -l
cksum main-static; strip main-static; ./main-static 3; size main-static | wc -l; objdump -d main-static | grep -c main; readelf -h main-shared | grep Type; make -s clean; ls *.o 2>/dev/null | wc -l; make nosuch; echo $?
END
seed=
app "compiler, errors, linker" <<'END'
export CCACHE_DISABLE=1; echo 'int main(void) { return 42; }' > a.c; gcc a.c; ./a.out; echo $?; gcc -static a.c -o s; ./s; echo $?; echo 'int main(' > b.c; gcc b.c -o b; echo $?; gcc -E - < a.c | tail -n 1; gcc -S a.c; gcc -c a.s; gcc -pipe a.o -o p; ./p; echo $?
ld -r a.o -o r.o; echo $?; echo 'int f(void); int main(void) { return f(); }' > u.c; gcc u.c 2>/dev/null; echo $?; gcc -flto -O2 a.c -o l; ./l; echo $?; echo 'a { color: red }' | gcc -fsyntax-only -x c - 2>/dev/null; echo $?
cat > t.c <<'C'
#include <pthread.h>
#include <dlfcn.h>
#include <stdio.h>
static int n; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *run(void *a) { for (int i = 0; i < 2000; i++) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); } return a; }
int main(void) { pthread_t t[8]; for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, run, 0); for (int i = 0; i < 8; i++) pthread_join(t[i], 0); void *h = dlopen("./g.so", RTLD_NOW); printf("%d %d\n", n, ((int (*)(void))dlsym(h, "g"))()); }
C
echo 'int g(void) { return 7; }' | gcc -shared -fPIC -x c - -o g.so; gcc -pthread t.c -o t -ldl; ./t; echo $?; gcc -fsanitize=undefined a.c -o q && ./q; echo $?; g++ --version >/dev/null 2>&1 && { echo '#include <iostream>
int main() { try { throw 5; } catch (int e) { std::cout << e << std::endl; } }' > x.cc; g++ x.cc -o x; ./x; }
END
finish
