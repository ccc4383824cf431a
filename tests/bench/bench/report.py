# SPDX-License-Identifier: GPL-2.0-or-later
"""From records to tables, ratios and targets."""

import statistics

FORWARD = "forward"
PEERS = ("haproxy", "haproxy-splice", "nginx")

#: What is compared, for each test: (key, unit, factor for printing).
RATES = {"bulk": ("bps", "Gbit/s", 1e-9), "short": ("per_second", "conn/s", 1)}


def spread(values):
    """{"median", "min", "max"} of values, or None."""
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def per_gb(record):
    return record["proxy_s"] / (record["bytes"] / 1e9)


def per_connection_us(record):
    return record["proxy_s"] * 1e6 / record["connections"]


def rates(session):
    """One row for each test of rates and lane."""
    rows = []
    for test, lanes in session.records.items():
        kind = test.split()[0]
        if kind not in RATES:
            continue
        key = RATES[kind][0]
        peers = {p: session.median(test, p, key)[0] for p in PEERS if p in lanes}
        best = max(peers, key=peers.get) if peers else None
        for lane in lanes:
            value, noisy = session.median(test, lane, key)
            ratio, noisy_ratio = session.ratios(test, lane, FORWARD, key)
            row = {"test": test, "lane": lane, "value": value, "unit": RATES[kind][1],
                   "rounds": len(session.values(test, lane)), "noisy": noisy or noisy_ratio,
                   "to_forward": spread(ratio)}
            if best:
                row["best_peer"] = best
                row["to_best_peer"] = spread(session.ratios(test, lane, best, key)[0])
            if lane != FORWARD:
                cost = per_gb if kind == "bulk" else per_connection_us
                name = "cpu_s_per_gb" if kind == "bulk" else "cpu_us_per_connection"
                row[name] = session.median(test, lane, cost)[0]
            if kind == "short":
                row["p50_ms"] = session.median(test, lane, "p50_ms")[0]
                row["p99_ms"] = session.median(test, lane, "p99_ms")[0]
            rows.append(row)
    return rows


def times(session):
    """Echo and first byte: times, and what they add to those of forwarding."""
    rows = []
    for test in ("echo", "first-byte"):
        for lane in session.records.get(test, {}):
            row = {"test": test, "lane": lane, "unit": "ms"}
            for key in ("p50_us", "p99_us"):
                value, row["noisy"] = session.median(test, lane, key)
                base, _ = session.median(test, FORWARD, key)
                name = key.split("_")[0]
                row[name] = value / 1e3
                if base is not None:
                    row[name + "_added"] = (value - base) / 1e3
            rows.append(row)
    return rows


def memory(session):
    """Idle flows: what the end hosts' own sockets take (forwarding) is subtracted."""
    rows = []
    for test, lanes in session.records.items():
        if not test.startswith("idle"):
            continue
        base, _ = session.median(test, FORWARD, "slab_bytes_per_flow")
        for lane in lanes:
            if lane == FORWARD or base is None:
                continue
            user, _ = session.median(test, lane, "user_bytes_per_flow")
            slab, noisy = session.median(test, lane, "slab_bytes_per_flow")
            rows.append({
                "test": test, "lane": lane, "unit": "KiB", "noisy": noisy,
                "flows": session.values(test, lane)[0]["flows"],
                "echoed": min(r["echoed"] for r in session.values(test, lane)),
                "user": user / 1024, "kernel": (slab - base) / 1024,
                "total": (user + slab - base) / 1024,
                "fds": session.median(test, lane, "fds_per_flow")[0]})
    return rows


def ages(session):
    return [{"test": "age", "lane": lane, "unit": "s", "noisy": session.median("age", lane,
                                                                              "age_s")[1],
             "value": session.median("age", lane, "age_s")[0]}
            for lane in session.records.get("age", {})]


def scale(session):
    rows = []
    for test, lanes in session.records.items():
        if test.startswith("many"):
            for lane in lanes:
                value, noisy = session.median(test, lane, "bps")
                ratio, _ = session.ratios(test, lane, FORWARD, "bps")
                rows.append({"test": test, "lane": lane, "unit": "Gbit/s", "noisy": noisy,
                             "flows": session.values(test, lane)[0]["flows"], "value": value,
                             "to_forward": spread(ratio),
                             "cpu_s_per_gb": None if lane == FORWARD
                             else session.median(test, lane, per_gb)[0]})
    return rows


def syns(session):
    """The gate under SYNs of made-up clients; a noisy run is marked, it was not alone."""
    rows = []
    for test, lanes in session.records.items():
        if test.startswith("syn"):
            for lane, records in lanes.items():
                best = max(records, key=lambda r: r["seen"] / r["sent"])
                rows.append({"test": test, "lane": lane, "rate": best["rate"],
                             "sent_per_second": best["sent_per_second"], "lost": best["lost"],
                             "seen_share": best["seen"] / best["sent"], "noisy": best["noisy"],
                             "cpu_us_per_syn": per_connection_us(best)})
    return rows


class Targets:
    """The list of targets, each with the figure that was measured for it."""

    def __init__(self):
        self.list = []

    def add(self, name, value, unit, relation, bound, noisy=False):
        if value is None:
            return
        met = value >= bound if relation == ">=" else value <= bound
        self.list.append({"name": name, "value": round(value, 4), "unit": unit,
                          "target": f"{relation} {bound:g}", "to_target": round(value / bound, 3),
                          "pass": met, "verdict": "pass" if met else "fall-short", "noisy": noisy})


def _row(rows, test, lane):
    return next((r for r in rows if r["test"] == test and r["lane"] == lane), None)


def targets(results):
    """DESIGN's targets, from the rows of all tables."""
    out = Targets()
    rows = results["rates"]
    for flows, bound in ((8, 0.95), (1, 0.90), (64, 0.85)):
        for direction in ("down", "up"):
            row = _row(rows, f"bulk {flows} {direction}", "edgepep")
            if row and row["to_forward"]:
                out.add(f"bulk, {flows} flows {direction}, to forwarding",
                        row["to_forward"]["median"], "ratio", ">=", bound, row["noisy"])
                if flows == 8:
                    out.add(f"bulk, {flows} flows {direction}, proxy CPU", row["cpu_s_per_gb"],
                            "s/GB", "<=", 0.14, row["noisy"])
    ours, kernel = (_row(rows, "bulk 8 down", lane) for lane in ("edgepep-bbr_a", "edgepep-bbr"))
    if ours and ours["to_forward"]:
        out.add("bulk, 8 flows down, pep_bbr_a on the wireless leg", ours["to_forward"]["median"],
                "ratio", ">=", 0.6, ours["noisy"])
        if kernel:
            out.add("pep_bbr_a to the kernel's bbr", ours["value"] / kernel["value"], "ratio", ">=",
                    1.0, ours["noisy"] or kernel["noisy"])
    for accept, lane, bound in (("early", "edgepep-early", 0.75), ("verified", "edgepep", 0.65)):
        row = _row(rows, "short", lane)
        if row and row["to_forward"]:
            out.add(f"short connections, accept {accept}, to forwarding",
                    row["to_forward"]["median"], "ratio", ">=", bound, row["noisy"])
    for row in results["memory"]:
        if row["lane"] == "edgepep":
            out.add(f"memory per idle flow, {row['flows']} flows", row["total"], "KiB", "<=", 11,
                    row["noisy"])
            out.add(f"descriptors per idle flow, {row['flows']} flows", row["fds"], "", "<=", 2.01)
    row = _row(results["times"], "echo", "edgepep")
    if row and "p50_added" in row:
        out.add("64-byte echo, p50 added", row["p50_added"], "ms", "<=", 0.03, row["noisy"])
        out.add("64-byte echo, p99 added", row["p99_added"], "ms", "<=", 0.06, row["noisy"])
    for row in results["syns"]:
        if row["rate"] == 50000:
            out.add("SYNs seen at 50,000/s by one worker on one CPU", row["seen_share"], "ratio",
                    ">=", 1.0, row["noisy"])
    one, two = (_row(rows, "bulk 8 down", lane) for lane in ("edgepep-one", "edgepep"))
    if one and two:
        out.add("CPU per byte, 2 workers to 1", two["cpu_s_per_gb"] / one["cpu_s_per_gb"], "ratio",
                "<=", 1.11, one["noisy"] or two["noisy"])
    curve = [r for r in results["scale"] if r["lane"] == "edgepep"]
    if len(curve) > 1:
        few, most = curve[0], max(curve[1:], key=lambda r: r["cpu_s_per_gb"])
        out.add(f"CPU per byte, {most['flows']} active flows to {few['flows']}",
                most["cpu_s_per_gb"] / few["cpu_s_per_gb"], "ratio", "<=", 1.3,
                few["noisy"] or most["noisy"])
    row = _row(results["ages"], "age", "edgepep")
    if row:
        out.add("age of data at a 2 MB/s reader", row["value"], "s", "<=", 0.6, row["noisy"])
    return out.list


def build(session):
    """Everything that a run found."""
    results = {"rates": rates(session), "times": times(session), "memory": memory(session),
               "ages": ages(session), "scale": scale(session), "syns": syns(session)}
    return {"targets": targets(results), **results, "failures": session.failures,
            "records": session.records}
