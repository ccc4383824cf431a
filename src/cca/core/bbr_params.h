/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BBR_PARAMS_H
#define PEP_CCA_CORE_BBR_PARAMS_H

/*
 * Everything that may be set in the BBR family, in one table: the structure, the defaults, the
 * help, the parser and the manual page's test are made from it.
 *
 * The four controls are one program with four sets of defaults: pep_bbr is BBR version 1 as Linux
 * has it; pep_bbr_acd and pep_bbr_a answer losses that come with a standing queue; pep_bbr_d paces
 * below the estimated bandwidth while a queue stands.
 */

#include "cca/core/types.h"

/** Which test tells a congestive loss from a radio loss. */
enum pep_verdict {
	PEP_VERDICT_OFF,      /* none: BBR version 1 */
	PEP_VERDICT_STANDING, /* the least RTT of two rounds; checked at the loss and once a round
			       */
	PEP_VERDICT_PAPER,    /* single RTT samples, one decision per episode (Electronics 9:136) */
	PEP_VERDICT_AUTHOR,   /* as the authors' kernel code: halves on every ACK of a round */
};

/** How pacing follows the RTT. */
enum pep_rtt_pacing {
	PEP_RTT_PACING_OFF,
	PEP_RTT_PACING_SAFE,   /* standing RTT, with an allowance for jitter */
	PEP_RTT_PACING_STRICT, /* RTprop / SRTT, as reconstructed from TRITA-EECS-EX 2020:855 */
};

enum pep_bbr_kind {
	PEP_BBR_KIND_BBR,
	PEP_BBR_KIND_ACD,
	PEP_BBR_KIND_A,
	PEP_BBR_KIND_D,
	PEP_BBR_KIND_COUNT_,
};

/*
 * P(field, key, unit, min, max, default for pep_bbr, pep_bbr_acd, pep_bbr_a, pep_bbr_d, help)
 *
 * A unit with '|' lists words; the value is the word's place in the list.
 */
#define PEP_BBR_PARAMS(P)                                                                       \
	P(startup_gain, "startup-gain", "1/256", 257, 1023, 739, 739, 739, 739,                 \
	  "pacing and window gain while the bandwidth is being found (2/ln 2)")                 \
	P(drain_gain, "drain-gain", "1/256", 16, 255, 88, 88, 88, 88,                           \
	  "pacing gain while the queue made by the start drains (ln 2/2)")                      \
	P(probe_up_gain, "probe-up-gain", "1/256", 256, 512, 320, 320, 320, 320,                \
	  "pacing gain of the phase that asks for more bandwidth")                              \
	P(probe_down_gain, "probe-down-gain", "1/256", 64, 256, 192, 192, 192, 192,             \
	  "pacing gain of the phase after it")                                                  \
	P(cwnd_gain, "cwnd-gain", "1/256", 256, 1023, 512, 512, 512, 512,                       \
	  "window over the bandwidth-delay product in steady state")                            \
	P(margin_ppm, "pacing-margin", "1e-6", 0, 200000, 10000, 10000, 10000, 10000,           \
	  "part of the estimated bandwidth that pacing leaves free")                            \
	P(bw_window_rounds, "bw-window", "rounds", 2, 100, 10, 10, 10, 10,                      \
	  "how long the best bandwidth sample is believed")                                     \
	P(bw_window_ms, "bw-window-time", "ms", 0, 60000, 0, 0, 0, 0,                           \
	  "the same in time, but never less than bw-window unloaded round trips; 0: no bound")  \
	P(min_rtt_window_ms, "min-rtt-window", "ms", 1000, 600000, 10000, 10000, 10000, 10000,  \
	  "how long the least RTT is believed")                                                 \
	P(probe_rtt_ms, "probe-rtt", "ms", 0, 2000, 200, 200, 200, 200,                         \
	  "how long the window is cut to measure the least RTT again; 0: never")                \
	P(policer, "policer", "off|on", 0, 1, 1, 1, 1, 1,                                       \
	  "recognise a token bucket by its losses and keep to its rate")                        \
	P(aggregation_gain, "aggregation-gain", "1/256", 0, 1023, 256, 256, 256, 256,           \
	  "window added for ACKs that come in bunches; 0: none")                                \
	P(verdict, "verdict", "off|standing|paper|author", 0, 3, PEP_VERDICT_OFF,               \
	  PEP_VERDICT_STANDING, PEP_VERDICT_STANDING, PEP_VERDICT_OFF,                          \
	  "how a congestive loss is told from a radio loss")                                    \
	P(verdict_ratio, "verdict-ratio", "1/256", 257, 2048, 512, 512, 512, 512,               \
	  "RTT over the least RTT that makes a loss congestive at once")                        \
	P(verdict_rise, "verdict-rise", "1/256", 8, 1024, 64, 64, 64, 64,                       \
	  "rise of the standing RTT over the least RTT that makes a loss congestive")           \
	P(verdict_need, "verdict-need", "samples", 1, 255, 3, 3, 3, 3,                          \
	  "RTT samples in a row that must show the rise, or the same RTT")                      \
	P(verdict_burst, "verdict-burst", "times", 0, 16, 3, 3, 3, 3,                           \
	  "losses of a round over the usual ones that make them congestive (standing); 0: any") \
	P(regrow, "regrow", "1/256", 0, 1024, 0, 32, 16, 0,                                     \
	  "part of the bandwidth-delay product that a round gives back to the window after a "  \
	  "congestive loss (standing); 0: all at once")                                         \
	P(regain, "regain", "1/256", 0, 1023, 0, 0, 300, 0,                                     \
	  "growth of the bandwidth within a cycle, without a queue, that makes the search for " \
	  "the path's bandwidth begin anew; 0: none does")                                      \
	P(same_tol_us, "same-tolerance", "us", 0, 100000, 1000, 1000, 1000, 1000,               \
	  "RTTs that differ by no more count as the same (paper, author)")                      \
	P(cut_gain, "cut-gain", "1/256", 64, 256, 256, 256, 192, 256,                           \
	  "pacing gain of the round that follows a congestive loss")                            \
	P(rtt_pacing, "rtt-pacing", "off|safe|strict", 0, 2, PEP_RTT_PACING_OFF,                \
	  PEP_RTT_PACING_OFF, PEP_RTT_PACING_OFF, PEP_RTT_PACING_SAFE,                          \
	  "slow pacing down while the RTT is above the least RTT")                              \
	P(rtt_pacing_floor, "rtt-pacing-floor", "1/256", 0, 256, 0, 0, 0, 0,                    \
	  "least factor of rtt-pacing; 0: 128, or 208 and more where there is jitter (safe)")

struct pep_bbr_params {
#define PEP_P(field, key, unit, min, max, bbr, acd, a, d, help) uint32_t field;
	PEP_BBR_PARAMS(PEP_P)
#undef PEP_P
};

/* Initialisers of a struct pep_bbr_params. */
#define PEP_BBR_DEFAULT_BBR(field, key, unit, min, max, bbr, acd, a, d, help) .field = (bbr),
#define PEP_BBR_DEFAULT_ACD(field, key, unit, min, max, bbr, acd, a, d, help) .field = (acd),
#define PEP_BBR_DEFAULT_A(field, key, unit, min, max, bbr, acd, a, d, help)   .field = (a),
#define PEP_BBR_DEFAULT_D(field, key, unit, min, max, bbr, acd, a, d, help)   .field = (d),

#define PEP_BBR_PARAMS_BBR                          \
	{                                           \
		PEP_BBR_PARAMS(PEP_BBR_DEFAULT_BBR) \
	}
#define PEP_BBR_PARAMS_ACD                          \
	{                                           \
		PEP_BBR_PARAMS(PEP_BBR_DEFAULT_ACD) \
	}
#define PEP_BBR_PARAMS_A                          \
	{                                         \
		PEP_BBR_PARAMS(PEP_BBR_DEFAULT_A) \
	}
#define PEP_BBR_PARAMS_D                          \
	{                                         \
		PEP_BBR_PARAMS(PEP_BBR_DEFAULT_D) \
	}

#endif
