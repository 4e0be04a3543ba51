// @ts-check
// Health of the storages, the token store and the encoder.
import { background, get, send } from '../lib/api.js';
import { caddyfileButton } from '../lib/caddyfile.js';
import { fill, h, rich } from '../lib/dom.js';
import { elapsed, isTime } from '../lib/format.js';
import { driverIcon, icon } from '../lib/icons.js';
import { showProbe } from '../lib/probe.js';
import { mayAct } from '../lib/state.js';
import { announce, badge, busyWhile, details, empty, explained, facts, guarantees, openDialog, pageHead,
	rowList, time } from '../lib/ui.js';
import { changesContent, usageContent } from './usage.js';

const pause = 15000;
const countingPause = 2000;

/**
 * The health page, which refreshes automatically.
 * @param {PageContext} context
 * @returns {Promise<Page>}
 */
export async function health({ signal }) {
	const regions = { health: h('div', { class: 'region' }), usage: h('section'), changes: h('section') };
	const seen = h('p');
	/**
	 * @param {string} look
	 * @param {...Child} text
	 */
	const say = (look, ...text) => {
		seen.className = look;
		fill(seen, text);
	};
	let counting = false;
	let loaded = 0;
	/**
	 * Reads everything. While items are counted, it reads only their number most of the time.
	 * @param {boolean} all
	 * @param {Record<string, string>} [headers]
	 */
	const load = async (all, headers) => {
		/** @param {string} name */
		const read = (name) => get([name], {}, signal, headers);
		const [usage, state, changes] = await Promise.all([read('usage'),
			...all ? [read('health'), read('changes')] : []]);
		if (counting && !usage.counting) announce('The count is complete.', { visible: false });
		({ counting } = usage);
		show(regions.usage, usageContent(usage, countAgain));
		if (!all) return;
		loaded = Date.now();
		show(regions.health, content(state));
		show(regions.changes, changesContent(changes, usage));
	};
	await load(true);
	/** @param {Event} [event] */
	const refresh = async (event) => {
		try {
			if (event) await load(true);
			else await load(Date.now() - loaded >= pause, background);
			say('muted small-text', 'Refreshed at ', new Date().toLocaleTimeString());
			if (event) announce('Refreshed.');
		} catch (error) {
			if (error.name === 'AbortError') return;
			say('verdict bad', icon('down'),
				h('span', null, explained(error), ' The page may be out of date.'));
			if (event) announce(error.message);
		} finally {
			wait();
		}
	};
	/** @param {Event} event */
	function countAgain({ currentTarget }) {
		return busyWhile(/** @type {HTMLElement} */ (currentTarget), 'The count did not start', async () => {
			await send('POST', ['usage']);
			announce('The count has started.', { visible: false });
			await refresh();
		});
	}
	const reading = () => document.hidden || !getSelection()?.isCollapsed; // or copying text
	/** @type {ReturnType<typeof setTimeout> | undefined} */
	let timer;
	function wait() {
		clearTimeout(timer);
		if (signal.aborted) return;
		timer = setTimeout(() => (reading() ? wait() : refresh()), counting ? countingPause : pause);
	}
	wait();
	signal.addEventListener('abort', () => clearTimeout(timer));
	return {
		title: 'Health',
		content: [
			pageHead('Health', h('button', { type: 'button', onclick: refresh }, icon('refresh'), 'Refresh')),
			seen,
			Object.values(regions),
		],
	};
}

/**
 * Replaces the content, but keeps opened details and the focus.
 * @param {HTMLElement} region
 * @param {Child} children
 */
function show(region, children) {
	const folded = () => [...region.querySelectorAll('details')];
	const opened = new Set(folded().filter(({ open }) => open).map(({ dataset }) => dataset.key));
	const focused = region.contains(document.activeElement)
		&& document.activeElement?.closest('[data-key]')?.getAttribute('data-key');
	fill(region, children);
	for (const element of folded()) element.open = opened.has(element.dataset.key);
	/** @type {HTMLElement | null | '' | false | undefined} */
	const again = focused && region.querySelector(`[data-key="${CSS.escape(focused)}"]`);
	if (again) (again.querySelector('summary') ?? again).focus();
}

/**
 * @param {{storages: Stored[], checks?: CheckState[], tokens: TokenStore | null, webp_encoder: string,
 *   version: string}} answer
 */
function content({ storages, checks = [], tokens, webp_encoder: encoder, version }) {
	const down = [...storages, ...checks].filter(({ health: state }) => state?.state === 'down').length;
	const trouble = down + (tokens?.ok ? 0 : 1);
	return [
		h('p', { class: 'verdict ' + (trouble ? 'bad' : 'good') }, icon(trouble ? 'down' : 'up'),
			trouble ? `${trouble} of ${storages.length + checks.length + 1} need attention`
				: 'All checks passed'),
		h('section', null, h('h2', null, 'Storages'),
			storages.length === 0 ? empty('storages', 'No storage', 'None is configured.')
				: rowList('Storages', storages.map(storageRow))),
		checks.length > 0
		&& h('section', null, h('h2', null, 'Checks by other programs'),
			rowList('Checks by other programs', checks.map(checkRow))),
		h('section', null, h('h2', null, 'Service'), rowList('Service', [
			tokenRow(tokens ?? {}),
			serviceRow('items', 'WebP encoder', encoder || 'none: this build cannot make WebP variants'),
			serviceRow('info', 'Version', version),
			serviceRow('file', 'Configuration', 'The running configuration, with placeholders for secrets.',
				null,
				h('div', { class: 'row-actions' }, caddyfileButton(),
					h('a', { class: 'button', href: 'api/config', download: '', 'data-key': 'configuration' },
						'Download'))),
		])),
	];
}

/** @param {Stored} storage */
function storageRow(
	{ name, driver_title: title, driver_icon: symbol, health: state = {}, guarantees: list },
) {
	return h('li', { class: 'row' }, h('div', { class: 'row-icon' }, driverIcon(symbol)),
		h('div', { class: 'row-main' },
			h('h3', null, h('a', { href: `#/storages/${encodeURIComponent(name)}`, 'data-key': name }, name)),
			h('p', { class: 'muted' }, title), facts({
				Since: isTime(state.since) && time(state.since),
				Checked: time(state.checked),
				Took: isTime(state.checked) && elapsed(state.took_ms ?? 0),
			}, 'facts inline'),
			state.message && h('p', { class: state.state === 'down' ? 'trouble' : '' }, rich(state.message)),
			details(state.detail, 'Details', `${name}/detail`), list && list.length > 0
			&& h('details', { 'data-key': `${name}/guarantees` }, h('summary', null, 'Guarantees'),
				guarantees(list))), h('div', { class: 'row-state' }, badge(state.state)));
}

/** @param {CheckState} check */
function checkRow({ kind, alias, name, health: state }) {
	const title = `${name} of ${alias}`;
	const test = () => {
		const result = h('div', { class: 'probe' });
		openDialog(`Test of ${title}`, result);
		const path = ['aliases', kind, alias, 'checks', name, 'probe'];
		showProbe(result, title, async () => (await send('POST', path, { body: {} })).body,
			'a text, and the test file of virus scanners');
	};
	return serviceRow('check', title, isTime(state.checked) ? '' : state.message ?? '',
		isTime(state.checked) && [
			facts({ Asked: time(state.checked) }, 'facts inline'),
			state.message && h('p', { class: 'trouble' }, rich(state.message)),
			details(state.detail, 'Details', `${kind}/${title}/detail`),
		], [
		h('div', { class: 'row-state' }, badge(state.state)),
		mayAct()
		&& h('div', { class: 'row-actions' },
			h('button', { type: 'button', 'aria-label': `Test ${title}`, onclick: test }, 'Test')),
	]);
}

/** @param {TokenStore} tokens */
const tokenRow = ({ store, ok, message, detail }) =>
	serviceRow('lock', 'Token store', store ?? '', [
		message && h('p', { class: ok ? '' : 'trouble' }, rich(message)),
		details(detail, 'Details', 'tokens/detail'),
	], h('div', { class: 'row-state' }, badge(ok ? 'up' : 'down')));

/**
 * @param {string} symbol
 * @param {string} title
 * @param {string} text
 * @param {Child} [more]
 * @param {Child} [side]
 */
const serviceRow = (symbol, title, text, more, side) =>
	h('li', { class: 'row' }, h('div', { class: 'row-icon' }, icon(symbol)),
		h('div', { class: 'row-main' }, h('h3', null, title), h('p', { class: 'muted' }, text), more), side);
