/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mmwave.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/lab/linkemu/rng.h"

/* A person takes 50 to 150 ms to shadow the beam, and as long to clear it. */
#define EDGE_MIN_S 0.05
#define EDGE_MAX_S 0.15
/* And shadows it for 0.3 to 1 s. */
#define STAY_MIN_S 0.3
#define STAY_MAX_S 1.0

static double between(struct pep_rng *rng, double low, double high)
{
	return low + (high - low) * pep_rng_unit(rng);
}

void pep_mmwave_defaults(struct pep_mmwave *m)
{
	*m = (struct pep_mmwave){.los_mbit = 2500, .people_left = 0.15, .seed = 1};
}

double pep_mmwave_material(const char *name)
{
	/* Metal as published; the studies say "less" for the others without a number. */
	static const struct {
		const char *name;
		double left;
	} materials[] = {{"metal", 0.2}, {"cardboard", 0.8}, {"body", 0.5}};

	for (unsigned int i = 0; i < sizeof(materials) / sizeof(materials[0]); i++)
		if (strcmp(materials[i].name, name) == 0)
			return materials[i].left;
	return -1;
}

/* One person: in seconds when the shadow begins, is full, begins to end, has ended. */
struct person {
	double begins, full, clears, gone;
};

static struct person next_person(struct pep_rng *rng, double from, double per_s)
{
	struct person p;
	double edge = between(rng, EDGE_MIN_S, EDGE_MAX_S);

	p.begins = from - log(1 - pep_rng_unit(rng)) / per_s;
	p.full = p.begins + edge;
	p.clears = p.full + between(rng, STAY_MIN_S, STAY_MAX_S);
	p.gone = p.clears + edge;
	return p;
}

/* How much of the shadow is there: 0 none, 1 full. The rate follows it in decibels. */
static double shadow(const struct person *p, double t)
{
	if (t <= p->begins || t >= p->gone)
		return 0;
	if (t < p->full)
		return (t - p->begins) / (p->full - p->begins);
	if (t <= p->clears)
		return 1;
	return (p->gone - t) / (p->gone - p->clears);
}

void pep_mmwave_run(const struct pep_mmwave *m, unsigned int ms, double *bits)
{
	struct person person = {0};
	struct pep_rng rng;
	unsigned int i, k;

	pep_rng_seed(&rng, m->seed);
	if (m->people_per_s > 0)
		person = next_person(&rng, 0, m->people_per_s);
	for (i = 0; i < ms; i++) {
		double t = i * 1e-3;
		double left = 1;

		if (m->people_per_s > 0) {
			if (t > person.gone)
				person = next_person(&rng, t, m->people_per_s);
			left = pow(m->people_left, shadow(&person, t));
		}
		for (k = 0; k < m->n_blocks; k++)
			if (t >= m->blocks[k].at_s && t < m->blocks[k].at_s + m->blocks[k].for_s)
				left = fmin(left, m->blocks[k].left);
		bits[i] = m->los_mbit * 1000 * left;
	}
}
