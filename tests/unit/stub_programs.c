/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stub_programs.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/tap.h"
#include "tests/unit/stub_guest.h"
#include "tests/unit/stub_kernel.h"

extern const char guest_image[], guest_image_end[];

bool tk_files(void)
{
	static char file[FILE_LEN];

	tk.code_fd = memfd_create("code", MFD_CLOEXEC);
	tk.file_fd = memfd_create("file", MFD_CLOEXEC);
	memset(file, 'f', sizeof(file));
	return ftruncate(tk.code_fd, GUEST_IMAGE) == 0 && ftruncate(tk.file_fd, FILE_LEN) == 0 &&
	       pwrite(tk.code_fd, guest_image, (size_t)(guest_image_end - guest_image), 0) >= 0 &&
	       pwrite(tk.file_fd, file, sizeof(file), 0) >= 0;
}

static bool ticking;

static void *ticker_main(void *arg)
{
	while (__atomic_load_n(&ticking, __ATOMIC_SEQ_CST)) {
		usleep(*(const unsigned *)arg);
		ops->wake(tk.plat);
	}
	return NULL;
}

static void test_spin(unsigned wake_us)
{
	pthread_t th;

	tk.spinning = ticking = true;
	pthread_create(&th, NULL, ticker_main, &wake_us);
	tk_run(G_SPIN, 0);
	__atomic_store_n(&ticking, false, __ATOMIC_SEQ_CST);
	pthread_join(th, NULL);
	tap_ok(tk.n_interrupts >= INTERRUPTS, "%s: interrupts came", tk.mode);
	printf("# note %d interrupts\n", tk.n_interrupts);
}

void tk_programs(unsigned wake_us)
{
	tk_run(G_HELLO, 0);
	tap_eq(tk.results[0], 1, "%s: getppid", tk.mode);
	tk_run(G_VALUES, 0);
	tk_run(G_FORK, 0);
	tap_eq(tk.results[1], 1, "%s: the child of fork has ymm and its own memory", tk.mode);
	tk_run(G_THREAD, 0);
	tk_run(G_VM, 0);
	tk_run(G_REGS, 0);
	tk_run(G_BAD_REGS, 0);
	tap_ok(tk.n_faults == 1 && tk.results[21] == SIGSEGV, "%s: a bad rip is a fault of the guest", tk.mode);
	tk_run(G_FPU, 0);
	tk_run(G_FPU_TWO, 0);
	tk.skipping = true;
	tk_run(G_FAULT, 0);
	tk.skipping = false;
	tap_ok(tk.n_faults == 5 && tk.fault_signals[0] == SIGSEGV && tk.fault_signals[1] == SIGILL &&
	       tk.fault_signals[2] == SIGFPE && tk.fault_signals[3] == SIGTRAP && tk.fault_signals[4] == SIGSEGV,
	       "%s: faults are told", tk.mode);
	test_spin(wake_us);
	tk_run(G_EXEC, 0);
	tk_run(G_EXEC, 1);
	tk_run(G_PARK, 20);
	tk_run(G_PARK, 200);
	tk_run(G_MM, 0);
	tk_run(G_EXIT_GROUP, 0);
	tk_run(G_EXIT_GROUP, 1);
	tk_run(G_LEADER, 0);
	tap_eq(tk.results[6], 1, "%s: a thread outlives its leader", tk.mode);
	tk_run(G_STRESS, 0);
	tap_ok(tk.results[10] == 0 && tk.results[11] == 0 && tk.results[12] == 0 && tk.results[13] == 0,
	       "%s: four threads under interrupts see no mistake", tk.mode);
	printf("# note %d interrupts, wrong: %ld %ld %ld %ld\n", tk.n_interrupts, tk.results[10], tk.results[11],
	       tk.results[12], tk.results[13]);
}
