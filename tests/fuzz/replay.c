/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzz target over the seeds of its corpus, where there is no libFuzzer. Each seed is given
 * whole, then cut at up to CUTS places: most parsers break at the end of what they were promised.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUTS       64
#define SEED_BYTES (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An own allocation of exactly @size bytes, so that a sanitizer sees a read beyond it. */
static int run_bytes(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return -1;
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	return 0;
}

static int run_seed(const uint8_t *data, size_t size)
{
	size_t step = size / CUTS + 1;

	for (size_t cut = 0; cut < size; cut += step) {
		if (run_bytes(data, cut))
			return -1;
	}
	return run_bytes(data, size);
}

static int run_file(const char *path, uint8_t *buffer)
{
	FILE *in = fopen(path, "rb");
	size_t size;
	int err;

	if (!in) {
		perror(path);
		return -1;
	}
	size = fread(buffer, 1, SEED_BYTES, in);
	err = ferror(in) || !feof(in);
	fclose(in);
	if (err) {
		fprintf(stderr, "%s: cannot be read, or is larger than %d bytes\n", path,
			SEED_BYTES);
		return -1;
	}
	return run_seed(buffer, size);
}

/* Returns the number of seeds run, or -1. */
static int run_folder(const char *folder, uint8_t *buffer)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	if (!dir) {
		perror(folder);
		return -1;
	}
	while (count >= 0 && (entry = readdir(dir))) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
			    (int)sizeof(path) ||
		    run_file(path, buffer))
			count = -1;
		else
			count++;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	uint8_t *buffer = malloc(SEED_BYTES);
	char folder[4096];
	int count = -1;

	name = name ? name + 1 : argv[0];
	if (argc > 1)
		snprintf(folder, sizeof(folder), "%s", argv[1]);
	else if (strncmp(name, "fuzz_", 5) == 0)
		snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", PEP_SOURCE_DIR,
			 name + 5);
	else
		fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
	if (buffer && (argc > 1 || strncmp(name, "fuzz_", 5) == 0))
		count = run_folder(folder, buffer);
	free(buffer);
	if (count == 0)
		fprintf(stderr, "%s: no seed\n", folder);
	if (count <= 0)
		return 1;
	printf("%d seeds\n", count);
	return 0;
}
