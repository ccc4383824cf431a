/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_TESTS_UNIT_H
#define PEP_TESTS_UNIT_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/** Fails with both texts when @text does not contain @part. */
#define assert_contains(text, part)                                                 \
	do {                                                                        \
		if (!strstr((text), (part)))                                        \
			fail_msg("\"%s\" does not contain \"%s\"", (text), (part)); \
	} while (0)

#endif
