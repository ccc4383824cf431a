/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Charts over time, on uPlot. Colours are read from the style sheet when drawn: themes just work. */
'use strict';

const pepCharts = (() => {
  const WINDOW = 600;	/* seconds shown */
  const all = new Set();
  const sizes = new ResizeObserver(() => all.forEach((c) => c.resize()));

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const faded = (name, share) => `color-mix(in srgb, ${color(name)} ${share}%, transparent)`;

  function si(value, units, digits = 3) {
    let i = 0;
    while (value >= 999.5 && i < units.length - 1) {
      value /= 1000;
      i++;
    }
    return `${Number(value.toPrecision(digits))} ${units[i]}`;
  }

  const format = {
    rate: (v) => v == null ? '-' : si(v * 8, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']),
    bytes: (v) => v == null ? '-' : si(v, ['B', 'kB', 'MB', 'GB', 'TB']),
    time: (v) => v == null || v === 0 ? '-' : v < 1 ? `${Number((v * 1000).toPrecision(3))} ms` : `${Number(v.toPrecision(3))} s`,
    share: (v) => v == null ? '-' : v === 0 ? '0 %' : v < 0.0001 ? '< 0.01 %' : `${Number((v * 100).toPrecision(2))} %`,
    count: (v) => v == null ? '-' : v >= 10000 ? si(v, ['', 'k', 'M']) : `${Number(v.toPrecision(3))}`,
    flows: (v) => v == null ? '-' : v >= 10000 ? `${si(v, ['', 'k', 'M'])}` : `${v < 10 ? Number(v.toFixed(1)) : Math.round(v)}`,
    perSecond: (v) => v == null ? '-' : `${Number(v.toPrecision(2))} /s`,
    duration: (s) => {
      s = Math.floor(s);
      if (s < 60) return `${s} s`;
      if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
      if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
      return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
    },
  };

  function axes(formatValue) {
    const common = {
      stroke: () => color('soft'),
      grid: { stroke: () => color('grid'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui, "DejaVu Sans", sans-serif',
    };
    return [
      { ...common, size: 28, space: 70, values: (u, splits) => splits.map((s) => new Date(s * 1000).toTimeString().slice(0, 5)),
        incrs: [60, 120, 300] },
      { ...common, size: 82, space: 34, values: (u, splits) => splits.map((v) => v === 0 ? '0' : formatValue(v)) },
    ];
  }

  /*
   * series: [{label, color, dash, fill, format}]; stack: areas on top of each other.
   * draw(time, columns) shows; times are seconds since the epoch.
   */
  function create(element, { series, formatValue, height = 190, stack = false, least = 1, window = WINDOW, bare = false }) {
    let raw = series.map(() => []);
    const value = (i) => (u, v, s, idx) => {
      const at = idx == null ? raw[i].length - 1 : idx;
      return (series[i].format || formatValue)(at < 0 ? null : raw[i][at]);
    };
    const options = {
      width: element.clientWidth || 400,
      height,
      series: [{}, ...series.map((s, i) => ({
        label: s.label,
        stroke: () => color(s.color),
        width: stack ? 1 : s.dash ? 1.5 : 2,
        dash: s.dash,
        fill: stack ? () => faded(s.color, 62) : s.fill ? () => faded(s.color, 14) : undefined,
        value: value(i),
        points: { show: false },
        spanGaps: false,
      }))],
      bands: stack ? series.slice(1).map((s, i) => ({ series: [i + 2, i + 1] })) : undefined,
      axes: axes(formatValue).map((axis, i) => i && bare ? { ...axis, values: () => [], grid: { show: false } } : axis),
      scales: {
        x: { time: true, range: (u, min, max) => [max - Math.min(window, Math.max(120, max - min)), max] },
        y: { range: (u, min, max) => [0, bare ? least : Math.max(least, (max || 0) * 1.12)] },
      },
      cursor: { sync: { key: window === WINDOW ? 'page' : 'flow' }, points: { size: 6 }, drag: { x: false, y: false } },
      legend: { live: true, markers: { fill: (u, i) => color(series[i - 1].color), stroke: (u, i) => color(series[i - 1].color), width: 0 } },
    };
    const plot = new uPlot(options, [[], ...series.map(() => [])], element);
    const chart = {
      plot,
      draw(time, columns) {
        raw = columns;
        let shown = columns;
        if (stack) {
          const sum = new Array(time.length).fill(0);
          shown = columns.map((c) => c.map((v, i) => v == null ? null : (sum[i] += v)));
        }
        plot.setData([time, ...shown]);
        if (plot.cursor.left == null || plot.cursor.left < 0)
          plot.setLegend({ idx: time.length ? time.length - 1 : null });
      },
      resize() {
        if (element.clientWidth > 0 && element.clientWidth !== plot.width)
          plot.setSize({ width: element.clientWidth, height });
      },
      destroy() {
        sizes.unobserve(element);
        all.delete(chart);
        plot.destroy();
      },
    };
    all.add(chart);
    sizes.observe(element);
    return chart;
  }

  const redraw = () => all.forEach((c) => {
    c.plot.redraw(false, true);
    c.plot.root.querySelectorAll('.u-legend .u-marker').forEach((m, i) => {
      const s = c.plot.series[i];
      if (s && s.stroke) m.style.background = s.stroke(c.plot, i);
    });
  });

  return { create, redraw, format, WINDOW };
})();
