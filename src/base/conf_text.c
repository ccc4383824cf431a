/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pass over the text before libconfuse (3.3) sees it. On its own libconfuse
 *   - counts a comment as extra lines, so that its messages name the wrong line;
 *   - takes an unclosed section, and skips characters it does not know ("*", "+"), silently;
 *   - puts environment variables in place of ${NAME};
 *   - takes "a|b" as key b of section a, and "\0" inside strings as their end.
 * So comments are blanked here, the rest is refused with the right line, and no other string form
 * than plain text between quotes on one line remains.
 */
#include "base/conf_internal.h"

#include <errno.h>
#include <string.h>

struct scan {
	struct conf_loader *loader;
	char *at;
	int line;
	int depth;     /* of open braces */
	int open_line; /* of the last one opened at depth 0 */
};

static int scan_refuse(struct scan *scan, int line, const char *message)
{
	conf_report(scan->loader, scan->loader->file, line, "%s", message);
	return -EINVAL;
}

static int blank_line_comment(struct scan *scan)
{
	while (*scan->at && *scan->at != '\n')
		*scan->at++ = ' ';
	return 0;
}

static int blank_block_comment(struct scan *scan)
{
	int start = scan->line;
	char *end = strstr(scan->at + 2, "*/");

	if (!end)
		return scan_refuse(scan, start, "this comment is never closed; expected */");
	for (; scan->at < end + 2; scan->at++) {
		if (*scan->at == '\n')
			scan->line++;
		else
			*scan->at = ' ';
	}
	return 0;
}

static int char_check(struct scan *scan)
{
	unsigned char c = (unsigned char)*scan->at;

	if (c == '\\')
		return scan_refuse(scan, scan->line, "a backslash has no meaning here; remove it");
	if (c == '|')
		return scan_refuse(scan, scan->line, "unexpected \"|\"");
	if (c == '$' && scan->at[1] == '{')
		return scan_refuse(scan, scan->line,
				   "${...} is not replaced here; write the value itself");
	if (c < ' ' || c == 0x7f)
		return scan_refuse(scan, scan->line, "a control character; expected plain text");
	return 0;
}

static int skip_string(struct scan *scan)
{
	char quote = *scan->at++;
	int err;

	for (; *scan->at != quote; scan->at++) {
		if (*scan->at == '\n' || *scan->at == '\0')
			return scan_refuse(scan, scan->line,
					   "this string is not closed on its line");
		err = char_check(scan);
		if (err)
			return err;
	}
	scan->at++;
	return 0;
}

static bool in_word(char c)
{
	return c != '\0' && !strchr(" \t\r\n#\"'={}()+,*", c);
}

static int skip_word(struct scan *scan)
{
	int err = 0;

	for (; in_word(*scan->at) && !err; scan->at++)
		err = char_check(scan);
	return err;
}

static int skip_sign(struct scan *scan)
{
	char c = *scan->at;

	if (c == '+')
		return scan_refuse(scan, scan->line,
				   "unexpected \"+\"; a list is given as a whole");
	if (c == '*')
		return scan_refuse(scan, scan->line, "unexpected \"*\"");
	if (c == '{' && scan->depth++ == 0)
		scan->open_line = scan->line;
	if (c == '}' && scan->depth-- == 0)
		return scan_refuse(scan, scan->line, "this \"}\" closes nothing");
	scan->at++;
	return 0;
}

static int scan_step(struct scan *scan)
{
	switch (*scan->at) {
	case '\n':
		scan->line++;
		scan->at++;
		return 0;
	case ' ':
	case '\t':
	case '\r':
		*scan->at++ = ' ';
		return 0;
	case '#':
		return blank_line_comment(scan);
	case '"':
	case '\'':
		return skip_string(scan);
	case '/':
		if (scan->at[1] == '/')
			return blank_line_comment(scan);
		if (scan->at[1] == '*')
			return blank_block_comment(scan);
		return skip_word(scan);
	default:
		return in_word(*scan->at) ? skip_word(scan) : skip_sign(scan);
	}
}

int conf_text_prepare(struct conf_loader *loader, char *text, size_t length)
{
	struct scan scan = {.loader = loader, .at = text, .line = 1};
	int err;

	while (scan.at < text + length) {
		if (*scan.at == '\0')
			return scan_refuse(&scan, scan.line,
					   "a control character; expected plain text");
		err = scan_step(&scan);
		if (err)
			return err;
	}
	if (scan.depth > 0)
		return scan_refuse(&scan, scan.open_line, "this \"{\" is never closed");
	return 0;
}
