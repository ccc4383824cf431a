/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_API_H
#define PEP_MON_API_H

/*
 * Which path answers what. Flows and histories are rendered at most once per tick, metrics at most
 * every PEP_VIEW_FRESH_NS: a storm of scrapes does not become a storm of work.
 */

#include "mon/http_server.h"
#include "mon/view.h"

struct pep_api;

/** @view is borrowed. Returns 0 and a new object, or -ENOMEM. */
int pep_api_new(struct pep_view *view, struct pep_api **ret);
void pep_api_free(struct pep_api *api);

/** Takes the second's picture and forgets the answers rendered before. */
void pep_api_tick(struct pep_api *api);

/** Whose counts the metrics tell; may be NULL. */
void pep_api_set_server(struct pep_api *api, const struct pep_http_server *server);

/** The pep_http_handler; @user is the struct pep_api. */
struct pep_page *pep_api_handle(const struct pep_http_request *request, void *user);

#endif
