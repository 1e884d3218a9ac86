/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files that are named as arguments: for builds without libFuzzer. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	static uint8_t buf[1 << 20];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		uint8_t *copy;
		size_t n;

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		n = fread(buf, 1, sizeof(buf), f);
		fclose(f);
		copy = malloc(n ? n : 1); /* exact size: ASan sees reads past the end */
		if (!copy)
			return 1;
		for (size_t k = 0; k < n; k++)
			copy[k] = buf[k];
		LLVMFuzzerTestOneInput(copy, n);
		free(copy);
	}
	printf("replayed %d inputs\n", argc - 1);
	return 0;
}
