/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/reason.h"

#include <stddef.h>

static const char *const close_names[PEP_CLOSE_COUNT_] = {
	[PEP_CLOSE_FINISHED] = "finished",
	[PEP_CLOSE_CLIENT_RESET] = "client_reset",
	[PEP_CLOSE_SERVER_RESET] = "server_reset",
	[PEP_CLOSE_REFUSED] = "refused",
	[PEP_CLOSE_UNREACHABLE] = "unreachable",
	[PEP_CLOSE_CONNECT_TIMEOUT] = "connect_timeout",
	[PEP_CLOSE_CONNECT_FAILED] = "connect_failed",
	[PEP_CLOSE_CLIENT_GONE] = "client_gone",
	[PEP_CLOSE_SERVER_GONE] = "server_gone",
	[PEP_CLOSE_HANDSHAKE] = "handshake",
	[PEP_CLOSE_HALF_CLOSE_TIMEOUT] = "half_close_timeout",
	[PEP_CLOSE_IDLE_TIMEOUT] = "idle_timeout",
	[PEP_CLOSE_KILLED] = "killed",
	[PEP_CLOSE_SHUTDOWN] = "shutdown",
	[PEP_CLOSE_ERROR] = "error",
};

static const char *const bypass_names[PEP_BYPASS_COUNT_] = {
	[PEP_BYPASS_POLICY] = "policy",
	[PEP_BYPASS_MPTCP] = "mptcp",
	[PEP_BYPASS_FAST_OPEN] = "fast_open",
	[PEP_BYPASS_LOCAL] = "local",
	[PEP_BYPASS_MALFORMED] = "malformed",
	[PEP_BYPASS_FLOW_LIMIT] = "flow_limit",
	[PEP_BYPASS_CLIENT_LIMIT] = "client_limit",
	[PEP_BYPASS_PENDING_LIMIT] = "pending_limit",
	[PEP_BYPASS_RESOURCE] = "resource",
	[PEP_BYPASS_PROBATION] = "probation",
	[PEP_BYPASS_DRAIN] = "drain",
	[PEP_BYPASS_OPERATOR] = "operator",
	[PEP_BYPASS_STALLED] = "stalled",
};

static const char *const refuse_names[PEP_REFUSE_COUNT_] = {
	[PEP_REFUSE_LOOP] = "loop",
	[PEP_REFUSE_LIMIT] = "limit",
};

static const char *const limit_names[PEP_LIMIT_COUNT_] = {
	[PEP_LIMIT_WIRED] = "wired",       [PEP_LIMIT_WIRELESS] = "wireless",
	[PEP_LIMIT_RECEIVER] = "receiver", [PEP_LIMIT_APPLICATION] = "application",
	[PEP_LIMIT_PROXY] = "proxy",
};

static const char *name_of(const char *const *names, size_t count, size_t value)
{
	return value < count && names[value] ? names[value] : "?";
}

const char *pep_close_name(enum pep_close reason)
{
	return name_of(close_names, PEP_CLOSE_COUNT_, reason);
}

const char *pep_bypass_name(enum pep_bypass reason)
{
	return name_of(bypass_names, PEP_BYPASS_COUNT_, reason);
}

const char *pep_refuse_name(enum pep_refuse reason)
{
	return name_of(refuse_names, PEP_REFUSE_COUNT_, reason);
}

const char *pep_limit_name(enum pep_limit reason)
{
	return name_of(limit_names, PEP_LIMIT_COUNT_, reason);
}
