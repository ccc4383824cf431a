/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BWE_PARAMS_H
#define PEP_CCA_CORE_BWE_PARAMS_H

/* What may be set in pep_bwe, in one table like that of the BBR family (bbr_params.h). */

#include "cca/core/types.h"

/** How the bandwidth is estimated. */
enum pep_estimator {
	PEP_ESTIMATOR_TUSTIN,   /* Westwood (2001): bilinear low-pass over the samples of ACKs */
	PEP_ESTIMATOR_WESTWOOD, /* Westwood+: 0.9 old + 0.1 new, one sample a round */
	PEP_ESTIMATOR_TSW,      /* Jersey: time-sliding window of one RTT */
	PEP_ESTIMATOR_MAX,      /* best delivery rate of the last rounds */
};

enum pep_growth_kind {
	PEP_GROWTH_RENO,
	PEP_GROWTH_CUBIC, /* never slower than Reno */
};

/* P(field, key, unit, min, max, default, help); a unit with '|' lists words. */
#define PEP_BWE_PARAMS(P)                                                               \
	P(estimator, "estimator", "tustin|westwood+|tsw|max", 0, 3, PEP_ESTIMATOR_MAX,  \
	  "how the bandwidth is estimated")                                             \
	P(growth, "growth", "reno|cubic", 0, 1, PEP_GROWTH_CUBIC,                       \
	  "how the window grows above the slow-start threshold")                        \
	P(tau_ms, "tau", "ms", 10, 10000, 500, "time constant of the tustin estimator") \
	P(bw_window_rounds, "bw-window", "rounds", 2, 100, 10,                          \
	  "rounds over which the max estimator looks back")                             \
	P(loss_gain, "loss-gain", "1/256", 128, 512, 256,                               \
	  "window after a loss over estimate x least RTT")                              \
	P(pacing_gain, "pacing-gain", "1/256", 256, 1023, 307,                          \
	  "pacing rate over window / SRTT above the slow-start threshold")              \
	P(start_gain, "start-gain", "1/256", 256, 1023, 512, "the same below it")       \
	P(start_through_loss, "start-through-loss", "off|on", 0, 1, 1,                  \
	  "a loss without a queue does not end slow start")                             \
	P(recovery_growth, "recovery-growth", "off|on", 0, 1, 1,                        \
	  "the window grows in loss recovery too while there is no queue")              \
	P(start_exit, "start-exit", "off|on", 0, 1, 1, "a standing queue ends slow start")

struct pep_bwe_params {
#define PEP_P(field, key, unit, min, max, def, help) uint32_t field;
	PEP_BWE_PARAMS(PEP_P)
#undef PEP_P
};

/* Initialiser of a struct pep_bwe_params. */
#define PEP_BWE_DEFAULT(field, key, unit, min, max, def, help) .field = (def),
#define PEP_BWE_PARAMS_DEFAULT                  \
	{                                       \
		PEP_BWE_PARAMS(PEP_BWE_DEFAULT) \
	}

#endif
