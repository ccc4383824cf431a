/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_CCA_LOSS_H
#define PEP_SIM_CCA_LOSS_H

#include "cca.h"

extern const struct sim_cca sim_cca_fixed, sim_cca_reno, sim_cca_cubic;

#endif
