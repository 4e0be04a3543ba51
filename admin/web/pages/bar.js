// @ts-check
// The bar of actions on the selected entries of a list.
import { fill, h } from '../lib/dom.js';
import { plural, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { keyOf } from '../lib/links.js';
import { announce } from '../lib/ui.js';
import { maxSelected } from './selection.js';

/**
 * The bar of actions on the selected items. It works by keyboard too, until signal is aborted. remove
 * is the action of the key Delete, if the user may use it.
 * @param {Listing} list
 * @param {ItemSelection} selection
 * @param {{actions: BarAction[], remove?: ((items: Item[]) => void) | false}} of
 * @param {AbortSignal} signal
 */
export function selectionBar(list, selection, { actions, remove }, signal) {
	const count = h('p', { class: 'selection-count' });
	let reading = false;
	let restToo = false; // the button selects those that are not shown too
	let every = 0; // the number of all items if they were selected, those that are not shown too
	/** @param {BarAction} action */
	const button = ({ name, text, act, look }) =>
		h('button', {
			type: 'button',
			class: look,
			onclick: (event) => {
				reading = false;
				act([...selection.items.values()], event.currentTarget);
			},
		}, icon(name), h('span', null, text));
	const all = h('button', { type: 'button', class: 'plain', onclick: selectAll });
	const clear = h('button', { type: 'button', class: 'plain', onclick: clearSelection }, icon('cross'),
		'Clear');
	const element = h('section', {
		class: 'selection',
		'aria-label': 'Selection',
		tabindex: '-1',
		hidden: true,
	}, h('div', { class: 'selection-head' }, count, all, clear),
		h('div', { class: 'selection-actions' }, actions.map(button)));

	function show() {
		const { items } = selection;
		const held = document.activeElement;
		const hadFocus = element.contains(held);
		element.hidden = items.size === 0;
		let bytes = 0;
		for (const item of items.values()) bytes += item.size;
		const most = items.size >= maxSelected && ', the most at once';
		fill(count, h('strong', null, plural(items.size, 'item')), wideOnly(' selected'), `, ${size(bytes)}`,
			most);
		restToo = list.items().every((item) => items.has(keyOf(item)));
		all.hidden = !reading && restToo
			&& (!list.more() || items.size >= maxSelected || items.size === every);
		fill(all, reading ? 'Stop'
			: restToo ? 'Select the rest' : h('span', null, 'Select all', wideOnly(' shown')));
		if (items.size > 0)
			announce(`${plural(items.size, 'item')} selected${most || ''}`, { visible: false });
		if (hadFocus && element.hidden) list.focus();
		else if (held === all && all.hidden) element.focus({ preventScroll: true });
	}

	function clearSelection() {
		reading = false;
		selection.clear();
		announce('Nothing selected', { visible: false });
	}

	/** First the loaded items, then those that are not loaded yet. */
	async function selectAll() {
		if (reading) {
			reading = false;
			show();
			return;
		}
		const rest = restToo;
		selection.set(list.items(), true);
		if (!rest) return;
		reading = true;
		try {
			const read = await list.rest((items) => {
				if (!reading || signal.aborted) return false;
				selection.set(items, true);
				return selection.items.size < maxSelected;
			});
			if (read) every = selection.items.size;
		} catch (error) {
			announce(`Not all are selected: ${error.message}`);
		}
		reading = false;
		if (!signal.aborted) show();
	}

	/** @param {KeyboardEvent} event */
	function onkeydown(event) {
		const target = /** @type {HTMLElement} */ (event.target);
		if (document.querySelector('dialog[open]')) return;
		if (target.closest('select, textarea, input:not([type="checkbox"])')) return;
		if (event.key === 'a' && (event.ctrlKey || event.metaKey) && list.items().length > 0) {
			event.preventDefault();
			selection.set(list.items(), true);
		} else if (event.key === 'Escape' && selection.items.size > 0) clearSelection();
		else if (event.key === 'Delete' && remove && list.element.contains(target)) {
			const focused = /** @type {HTMLElement | null} */ (target.closest('[data-item]'))?.dataset.item;
			const items = selection.items.size > 0 ? [...selection.items.values()]
				: list.items().filter((item) => keyOf(item) === focused);
			if (items.length > 0) remove(items);
		}
	}

	selection.onChange(show);
	document.addEventListener('keydown', onkeydown, { signal });
	return element;
}

/**
 * A part of a text that a phone has no room for.
 * @param {string} text
 */
export const wideOnly = (text) => h('span', { class: 'wide-only' }, text);
