/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page: asks once a second, draws what came, and says clearly when nothing comes. */
'use strict';

const { format } = pepCharts;
const $ = (id) => document.getElementById(id);
const root = document.documentElement;

const LIMITS = ['wireless', 'wired', 'receiver', 'proxy', 'application'];

/* ---- what we know ---------------------------------------------------------------------------- */

let history = null;	/* the columns of /api/v1/segments/history */
let sort = { key: 'rate', ascending: false };
let limitDirection = 'downlink';
let flowState = 'live';
let openFlow = null;	/* id shown in the dialog */

async function get(path) {
  const response = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(1500) });
  const body = await response.json();
  if (!response.ok)
    throw Object.assign(new Error(body.error || response.statusText), { status: response.status });
  return body;
}

/* Calls fn(path, column) for each column of the nested object. */
function eachColumn(object, fn, path = []) {
  for (const [key, value] of Object.entries(object)) {
    if (Array.isArray(value)) fn([...path, key], value);
    else if (value && typeof value === 'object') eachColumn(value, fn, [...path, key]);
  }
}

function mergeHistory(fresh) {
  if (!history || !history.time.length) {
    history = fresh;
    return;
  }
  const last = history.time[history.time.length - 1];
  const from = fresh.time.findIndex((t) => t > last + 0.001);
  if (from < 0) return;
  eachColumn(fresh, (path, column) => {
    const own = path.reduce((o, key) => o[key], history);
    own.push(...column.slice(from));
    own.splice(0, own.length - pepCharts.WINDOW);
  });
}

/* ---- charts ---------------------------------------------------------------------------------- */

const bothSegments = (extra = {}) => [
  { label: 'wireless', color: 'wireless', fill: true, ...extra },
  { label: 'wired', color: 'wired', dash: [6, 3], ...extra },
];

const charts = {
  down: pepCharts.create($('chart-down'), { series: bothSegments(), formatValue: format.rate, least: 1000 }),
  up: pepCharts.create($('chart-up'), { series: bothSegments(), formatValue: format.rate, least: 1000 }),
  rtt: pepCharts.create($('chart-rtt'), {
    series: [
      { label: 'wireless', color: 'wireless' }, { label: 'wireless min', color: 'wireless', dash: [2, 4] },
      { label: 'wired', color: 'wired' }, { label: 'wired min', color: 'wired', dash: [2, 4] },
    ],
    formatValue: format.time, least: 0.001,
  }),
  retrans: pepCharts.create($('chart-retrans'), { series: bothSegments(), formatValue: format.share, least: 0.001 }),
  held: pepCharts.create($('chart-held'), {
    series: [{ label: 'downlink', color: 'wireless', fill: true }, { label: 'uplink', color: 'wired', fill: true }],
    formatValue: format.bytes, least: 1000,
  }),
  flows: pepCharts.create($('chart-flows'), {
    series: [
      { label: 'active', color: 'ink', fill: true }, { label: 'new', color: 'good', format: format.perSecond },
      { label: 'bypassed', color: 'warn', format: format.perSecond },
    ],
    formatValue: format.count, least: 4,
  }),
  limits: pepCharts.create($('chart-limits'), {
    series: LIMITS.map((name) => ({ label: name, color: name })),
    formatValue: format.flows, stack: true, height: 210, least: 1,
  }),
};

function drawCharts() {
  const { time, wireless, wired } = history;
  const pair = (key) => [wireless[key], wired[key]];
  charts.down.draw(time, pair('downlink_bytes_per_second'));
  charts.up.draw(time, pair('uplink_bytes_per_second'));
  charts.rtt.draw(time, [wireless.rtt_seconds, wireless.min_rtt_seconds, wired.rtt_seconds, wired.min_rtt_seconds]);
  charts.retrans.draw(time, pair('retransmitted_share'));
  charts.held.draw(time, [history.queued_bytes.downlink, history.queued_bytes.uplink]);
  charts.flows.draw(time, [history.flows, history.new_flows_per_second, history.bypassed_flows_per_second]);
  charts.limits.draw(time, LIMITS.map((name) => history.limited_flows[limitDirection][name]));
}

/* ---- the strip and the header ------------------------------------------------------------------ */

const last = (column) => column.length ? column[column.length - 1] : null;

function recent(column) {	/* the newest value of the last few seconds */
  for (let i = column.length - 1; i >= 0 && i > column.length - 6; i--)
    if (column[i] != null) return column[i];
  return null;
}

function drawStrip() {
  const isUp = !['down', 'blind', 'unreachable'].includes(root.dataset.state);
  const latest = (column) => isUp ? last(column) : null;	/* old numbers must not pass for new ones */
  const lately = (column) => isUp ? recent(column) : null;
  for (const segment of ['wireless', 'wired']) {
    const columns = history[segment];
    $(`${segment}-down`).textContent = format.rate(latest(columns.downlink_bytes_per_second));
    $(`${segment}-up`).textContent = format.rate(latest(columns.uplink_bytes_per_second));
    $(`${segment}-rtt`).textContent = format.time(lately(columns.rtt_seconds));
    $(`${segment}-min-rtt`).textContent = format.time(lately(columns.min_rtt_seconds));
    $(`${segment}-retrans`).textContent = format.share(lately(columns.retransmitted_share));
  }
  const held = [latest(history.queued_bytes.downlink), latest(history.queued_bytes.uplink)];
  $('held').textContent = held[0] == null ? '-' : format.bytes(held[0] + held[1]);
  $('new').textContent = format.perSecond(latest(history.new_flows_per_second));
  $('bypassed').textContent = format.perSecond(latest(history.bypassed_flows_per_second));

  const now = Object.fromEntries(LIMITS.map((name) => [name, latest(history.limited_flows[limitDirection][name]) || 0]));
  const busy = LIMITS.filter((name) => name !== 'application').reduce((sum, name) => sum + now[name], 0);
  const top = LIMITS.slice(0, 4).reduce((a, b) => now[b] > now[a] ? b : a);
  const shown = busy >= 0.5;
  const words = {
    wireless: 'the wireless segment holds back', wired: 'the wired segment holds back',
    receiver: 'receivers hold back', proxy: 'the proxy holds back',
  };
  $('verdict').textContent = shown ? `${words[top]} ${Math.round(100 * now[top] / busy)} % of the flows that have data` : isUp ? 'no flow is held back' : '';
  for (const segment of ['wireless', 'wired']) {
    $(`segment-${segment}`).classList.toggle('culprit', shown && top === segment);
    $(`limits-${segment}`).textContent = shown && now[segment] >= 0.5 ? `limits ${Math.round(now[segment])} flows` : '';
  }
}

const STATES = {
  running: ['running', '', ''],
  starting: ['starting', '', ''],
  draining: ['draining', 'Draining', 'New flows go end to end; open ones are finished.'],
  bypass: ['bypassed', 'Bypassed', 'New flows go end to end, by the operator\u2019s order.'],
  down: ['proxy down', 'Proxy down', ''],
  blind: ['no view', 'Cannot see the proxy', ''],
  unreachable: ['no monitor', 'No answer from the monitor', 'edgepep-mon does not answer; what you see is old.'],
};

function setState(state, reason = '') {
  const [pill, title, text] = STATES[state] || [state, state, ''];
  root.dataset.state = state;
  $('state').textContent = pill;
  $('banner').hidden = !title;
  $('banner-title').textContent = title;
  $('banner-text').textContent = text || reason;
  document.title = state === 'running' ? 'edgepep' : `edgepep: ${pill}`;
}

function drawStatus(status) {
  const daemon = status.daemon;
  setState(status.up ? daemon.state : status.blind ? 'blind' : 'down', status.reason || '');
  $('uptime').textContent = daemon ? format.duration(daemon.uptime_seconds) : '-';
  $('flows').textContent = daemon ? `${daemon.flows} of ${format.count(daemon.flows_limit)}` : '-';
  $('version').textContent = daemon ? daemon.version : status.monitor.version;
  $('updated').textContent = `updated ${new Date(status.time * 1000).toTimeString().slice(0, 8)}`;
}

/* ---- the table ----------------------------------------------------------------------------------- */

const share = (leg) => leg.tcp && leg.tcp.bytes_sent ? leg.tcp.bytes_retrans / leg.tcp.bytes_sent : null;
const queued = (f) => f.downlink.held_bytes + f.uplink.held_bytes + [f.wireless, f.wired].reduce((sum, leg) => sum + leg.unread_bytes + (leg.tcp ? leg.tcp.notsent_bytes : 0), 0);
const us = (v) => v ? v / 1e6 : null;

function element(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

const address = (ip, port) => element('span', 'addr', ip, element('small', '', `:${port}`));
const chip = (limit) => element('span', `chip ${limit}`, limit);

const legColumns = (name) => [
  { title: 'control', first: true, left: true, cell: (f) => element('span', f[name].cca_fallback ? 'fallback' : '', f[name].cca || '-') },
  { title: 'RTT / min', sort: `${name}_rtt`, cell: (f) => f[name].tcp ? `${format.time(us(f[name].tcp.rtt_us))} / ${format.time(us(f[name].tcp.min_rtt_us))}` : '-' },
  { title: 'cwnd', cell: (f) => f[name].tcp ? f[name].tcp.cwnd : '-' },
  { title: 'retr.', sort: name === 'wireless' ? 'retransmitted' : null, cell: (f) => format.share(share(f[name])) },
];

const COLUMNS = [
  { title: 'client', left: true, cell: (f) => address(f.client, f.client_port) },
  { title: 'server', left: true, cell: (f) => address(f.server, f.server_port) },
  { title: 'class', left: true, cell: (f) => f.class },
  { title: 'age', sort: 'age', cell: (f) => f.close_reason ? `${format.duration(f.age_seconds)}, ${f.close_reason}` : format.duration(f.age_seconds) },
  { title: '\u2193 / \u2191', first: true, sort: 'rate', cell: (f) => `${format.rate(f.downlink.bytes_per_second)} / ${format.rate(f.uplink.bytes_per_second)}` },
  { title: 'queued', sort: 'queued', cell: (f) => format.bytes(queued(f)) },
  { title: 'limited by', left: true, cell: (f) => chip(f[limitDirection].limit) },
  ...legColumns('wireless'), ...legColumns('wired'),
];

function drawHead() {
  $('columns').replaceChildren(...COLUMNS.map((c) => {
    const th = element('th', c.left ? 'left' : '');
    if (!c.sort || flowState === 'closed') {
      th.append(c.title);
      return th;
    }
    const button = element('button', '', c.title);
    button.type = 'button';
    button.addEventListener('click', () => {
      sort = { key: c.sort, ascending: sort.key === c.sort && !sort.ascending };
      drawHead();
      updateFlows().catch(() => {});
    });
    if (sort.key === c.sort) th.setAttribute('aria-sort', sort.ascending ? 'ascending' : 'descending');
    th.append(button);
    return th;
  }));
}

function drawRows(flows) {
  $('rows').replaceChildren(...flows.map((f) => {
    const tr = element('tr', '', ...COLUMNS.map((c) => element('td', `${c.left ? 'left ' : ''}${c.first ? 'first-of-group' : ''}`.trim(), c.cell(f))));
    tr.tabIndex = 0;
    tr.dataset.id = f.id;
    return tr;
  }));
  $('no-flows').hidden = flows.length > 0;
}

async function updateFlows() {
  const client = $('client').value.trim();
  const query = new URLSearchParams({ limit: 40, sort: sort.key, order: sort.ascending ? 'asc' : 'desc', state: flowState });
  if (client) query.set('client', client);
  try {
    const { total, flows } = await get(`/api/v1/flows?${query}`);
    $('client').classList.remove('bad');
    $('flow-count').textContent = total > flows.length ? `${flows.length} of ${total}` : `${total}`;
    /* Not under the reader's finger: a row that is being pressed stays. */
    if (!document.querySelector('#rows tr:active')) {
      const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.id : null;
      drawRows(flows);
      if (focused) [...$('rows').children].filter((tr) => tr.dataset.id === focused).forEach((tr) => tr.focus());
    }
  } catch (error) {
    if (error.status !== 400) throw error;
    $('client').classList.add('bad');
    $('flow-count').textContent = error.message;
  }
}

/* ---- one flow ------------------------------------------------------------------------------------ */

let flowCharts = null;

const LEG_ROWS = [
  ['congestion control', (l) => l.cca + (l.cca_fallback ? ' (fallback)' : '')],
  ['state', (l, t) => `${t.state}, ${t.ca_state}`],
  ['RTT', (l, t) => `${format.time(us(t.rtt_us))} \u00b1 ${format.time(us(t.rttvar_us))}`],
  ['min RTT', (l, t) => format.time(us(t.min_rtt_us))],
  ['retransmission timer', (l, t) => format.time(us(t.rto_us))],
  ['congestion window', (l, t) => `${t.cwnd} packets`],
  ['slow start threshold', (l, t) => t.ssthresh >= 0x7fffffff ? 'none yet' : `${t.ssthresh} packets`],
  ['delivery rate', (l, t) => format.rate(t.delivery_rate)],
  ['pacing rate', (l, t) => t.pacing_rate ? format.rate(t.pacing_rate) : 'none'],
  ['in flight', (l, t) => `${t.unacked} packets`],
  ['not sent yet', (l, t) => format.bytes(t.notsent_bytes)],
  ['not read by the relay yet', (l) => format.bytes(l.unread_bytes)],
  ['peer\u2019s window', (l, t) => format.bytes(t.snd_wnd)],
  ['acknowledged / received', (l, t) => `${format.bytes(t.bytes_acked)} / ${format.bytes(t.bytes_received)}`],
  ['retransmitted', (l, t) => `${format.bytes(t.bytes_retrans)}, ${format.share(share(l))}`],
  ['busy', (l, t) => format.time(us(t.busy_us))],
  ['held by peer\u2019s window', (l, t) => format.time(us(t.rwnd_limited_us))],
  ['believed bandwidth', (l) => l.belief ? format.rate(l.belief.bandwidth) : '-'],
  ['believed min RTT', (l) => l.belief ? format.time(us(l.belief.min_rtt_us)) : '-'],
  ['mode, pacing gain', (l) => l.belief ? `${l.belief.mode || l.belief.mode_number}, ${l.belief.pacing_gain.toFixed(2)}` : '-'],
  ['congestions, cuts', (l) => l.belief ? `${l.belief.congestions}, ${l.belief.cuts}` : '-'],
];

function drawFlow(f) {
  $('detail-title').textContent = `Flow ${f.id}`;
  $('detail-sub').textContent = `${f.client} port ${f.client_port} \u2192 ${f.server} port ${f.server_port}, class ${f.class}, DSCP ${f.dscp}, ` +
    (f.close_reason ? `closed after ${format.duration(f.age_seconds)}: ${f.close_reason}` : `${f.state} for ${format.duration(f.age_seconds)}`);
  $('detail-limits').replaceChildren(...['downlink', 'uplink'].flatMap((d) => [element('b', '', d), chip(f[d].limit),
    element('span', '', `${format.bytes(f[d].bytes)} relayed, ${format.bytes(f[d].held_bytes)} of ${format.bytes(f[d].target_bytes)} held`)]));
  $('legs').replaceChildren(...LEG_ROWS.map(([title, cell]) => {
    const value = (leg) => leg.tcp ? cell(leg, leg.tcp) : '-';
    return element('tr', '', element('th', '', title), element('td', '', value(f.wireless)), element('td', '', value(f.wired)));
  }));
  if (f.history && flowCharts) {
    const h = f.history;
    flowCharts.rate.draw(h.time, [h.downlink.bytes_per_second, h.uplink.bytes_per_second]);
    flowCharts.rtt.draw(h.time, [h.wireless.rtt_seconds, h.wired.rtt_seconds]);
    flowCharts.limit.draw(h.time, LIMITS.map((name) => h[limitDirection].limit.map((limit) => limit === name ? 1 : 0)));
  }
}

async function updateFlow() {
  if (!openFlow) return;
  try {
    drawFlow(await get(`/api/v1/flows/${openFlow}`));
  } catch (error) {
    if (error.status !== 404) throw error;
    $('detail-sub').textContent = error.message;
  }
}

function showFlow(id) {
  openFlow = id;
  $('detail-title').textContent = `Flow ${id}`;
  $('detail').showModal();
  flowCharts = {
    rate: pepCharts.create($('chart-flow-rate'), { series: [{ label: 'downlink', color: 'wireless', fill: true }, { label: 'uplink', color: 'wired' }], formatValue: format.rate, height: 150, least: 1000, window: 599 }),
    rtt: pepCharts.create($('chart-flow-rtt'), { series: bothSegments(), formatValue: format.time, height: 150, least: 0.001, window: 599 }),
  };
  flowCharts.limit = pepCharts.create($('chart-flow-limit'), { series: LIMITS.map((name) => ({ label: name, color: name, format: () => '' })), formatValue: format.count, stack: true, height: 74, window: 599, bare: true });
  updateFlow().catch(() => {});
}

$('detail').addEventListener('close', () => {
  openFlow = null;
  Object.values(flowCharts || {}).forEach((chart) => chart.destroy());
  flowCharts = null;
});
$('detail-close').addEventListener('click', () => $('detail').close());
$('detail').addEventListener('click', (event) => { if (event.target === $('detail')) $('detail').close(); });
$('rows').addEventListener('click', (event) => {
  const tr = event.target.closest('tr');
  if (tr) showFlow(tr.dataset.id);
});
$('rows').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && event.target.dataset.id) showFlow(event.target.dataset.id);
});

/* ---- switches ------------------------------------------------------------------------------------ */

function bindSwitch(id, chosen) {
  $(id).addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    for (const b of $(id).children) b.setAttribute('aria-pressed', String(b === button));
    chosen(button.dataset.value);
  });
}
bindSwitch('limit-direction', (value) => {
  limitDirection = value;
  if (history) { drawCharts(); drawStrip(); }
  updateFlows().catch(() => {});
});
bindSwitch('flow-state', (value) => {
  flowState = value;
  drawHead();
  updateFlows().catch(() => {});
});
$('client').addEventListener('input', () => updateFlows().catch(() => {}));

const THEMES = ['system', 'light', 'dark'];
function setTheme(theme) {
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
  $('theme').textContent = `theme: ${theme}`;
  try { localStorage.setItem('edgepep-theme', theme); } catch { /* private mode: not remembered */ }
  pepCharts.redraw();
}
function storedTheme() {
  try { return localStorage.getItem('edgepep-theme'); } catch { return null; }
}
$('theme').addEventListener('click', () => {
  setTheme(THEMES[(THEMES.indexOf(root.dataset.theme || 'system') + 1) % THEMES.length]);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', pepCharts.redraw);

/* ---- once a second ------------------------------------------------------------------------------- */

let failures = 0;

async function update() {
  try {
    drawStatus(await get('/api/v1/status'));
    failures = 0;
  } catch {
    if (++failures >= 2 || root.dataset.state === 'loading') setState('unreachable');
    return;
  }
  try {
    mergeHistory(await get(`/api/v1/segments/history?seconds=${history && document.visibilityState === 'visible' && !stale ? 5 : 600}`));
    stale = false;
    drawCharts();
    drawStrip();
    await updateFlows();
    await updateFlow();
  } catch (error) {
    /* The next second tries again; the state above was told by the status alone. */
    if (!(error instanceof DOMException) && !(error instanceof TypeError) && !error.status) throw error;
  }
}

let stale = false;
async function loop() {
  for (;;) {
    const start = performance.now();
    if (document.visibilityState === 'visible') await update();
    else stale = true;
    await new Promise((resolve) => setTimeout(resolve, Math.max(200, 1000 - (performance.now() - start))));
  }
}

setTheme(THEMES.includes(storedTheme()) ? storedTheme() : 'system');
drawHead();
loop();
