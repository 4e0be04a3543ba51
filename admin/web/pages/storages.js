// @ts-check
// The list of storages.
import { get, send } from '../lib/api.js';
import { h, rich } from '../lib/dom.js';
import { isTime } from '../lib/format.js';
import { driverIcon, icon } from '../lib/icons.js';
import { showProbe } from '../lib/probe.js';
import { mayAct, mayConfigure } from '../lib/state.js';
import { badge, details, empty, openDialog, pageHead, rowList, time } from '../lib/ui.js';
import { removeStorage, storagePage, usedBy } from './storage.js';

/**
 * The page of all storages, or of one.
 * @param {PageContext} context
 * @returns {Promise<Page>}
 */
export async function storages({ segments, query, signal, reload }) {
	if (segments.length > 0 || query.add) return storagePage(segments[0] ?? '', signal);
	/** @type {{storages: Stored[]}} */
	const { storages: list } = await get(['storages'], {}, signal);
	const add = mayConfigure()
		&& h('a', { class: 'button primary', href: '#/storages?add=1' }, icon('plus'), 'Add storage');
	const own = list.filter(({ implicit }) => !implicit);
	return {
		title: 'Storages',
		content: [
			pageHead('Storages', add),
			h('p', { class: 'lead' }, 'Backends that hold the items. Aliases decide which uploads go where.'),
			list.length > 0 && rowList('Storages', list.map((storage) => row(storage, reload))),
			own.length === 0
			&& empty('storages', 'No storage is configured yet', list.length > 0
				? 'Until then items are stored in Caddy’s data folder. '
					+ 'Add a folder of your choice, a bucket or another host.'
				: 'Add a folder, a bucket or another host for the items.', add && add.cloneNode(true)),
		],
	};
}

/**
 * @param {Stored} storage
 * @param {() => void} reload
 */
function row(storage, reload) {
	const { name, health = {}, used_by: users = [], implicit } = storage;
	return h('li', { class: 'row' }, h('div', { class: 'row-icon' }, driverIcon(storage.driver_icon)),
		h('div', { class: 'row-main' },
			h('h2', null, h('a', { href: `#/storages/${encodeURIComponent(name)}` }, name),
				implicit && h('span', { class: 'tag' }, 'built in')),
			h('p', null, h('span', { class: 'driver' }, storage.driver_title), ' ',
				h('span', { class: 'muted path' }, storage.where)), usedBy(users), health.state === 'down'
			&& h('div', { class: 'trouble' }, h('p', null, rich(health.message)), details(health.detail))),
		h('div', { class: 'row-state' }, badge(health.state),
			h('p', { class: 'muted small-text' },
				isTime(health.checked) ? ['checked ', time(health.checked)] : 'not checked yet')),
		h('div', { class: 'row-actions' }, mayAct()
			&& h('button', { type: 'button', 'aria-label': `Test ${name}`, onclick: () => test(name) },
				'Test'), mayConfigure()
			&& h('a', {
				class: 'button',
				href: `#/storages/${encodeURIComponent(name)}`,
				'aria-label': `Edit ${name}`,
			}, 'Edit'), mayConfigure() && !implicit && removeStorage(storage, reload)));
}

/** @param {string} name */
function test(name) {
	const result = h('div', { class: 'probe' });
	openDialog(`Test of ${name}`, result);
	showProbe(result, name, async () => (await send('POST', ['storages', name, 'probe'], { body: {} })).body);
}
