// @ts-check
// The selected items of a list, and how they are selected by mouse, touch and keyboard.
import { keyOf } from '../lib/links.js';

/** The most items that can be selected at once. */
export const maxSelected = 10_000;

/** The selected items by their keys, in the order of their selection. */
export function newSelection() {
	/** @type {Map<string, Item>} */
	const items = new Map();
	/** @type {((keys: string[]) => void)[]} */
	const listeners = [];
	/**
	 * @param {Item[]} list
	 * @param {boolean} on
	 */
	function set(list, on) {
		const changed = list.filter((item) => items.has(keyOf(item)) !== on);
		for (const item of changed) {
			if (!on) items.delete(keyOf(item));
			else if (items.size < maxSelected) items.set(keyOf(item), item);
		}
		if (changed.length > 0) notify(changed.map(keyOf));
	}
	/** @param {string[]} keys */
	const notify = (keys) => listeners.forEach((listener) => listener(keys));
	return {
		items,
		set,
		clear: () => set([...items.values()], false),
		/** @param {(keys: string[]) => void} listener is called with those that changed */
		onChange: (listener) => {
			listeners.push(listener);
		},
	};
}

/**
 * Lets the user select items of the list: by check box, Ctrl or Shift with a click, Space, Shift with
 * arrow keys, Ctrl+A and Escape. Returns extend, which the list calls when an arrow key has moved.
 * @param {HTMLElement} element
 * @param {ItemSelection} selection
 * @param {() => Item[]} items the loaded items in their order
 */
export function selecting(element, selection, items) {
	let anchor = '';
	/** @type {Item[]} */
	let range = [];
	/** @param {string} key */
	const find = (key) => items().find((item) => keyOf(item) === key);

	/**
	 * @param {string} key
	 * @param {boolean} on
	 */
	function pick(key, on) {
		const item = find(key);
		if (!item) return;
		anchor = key;
		range = [];
		selection.set([item], on);
	}

	/**
	 * Selects from the anchor to an item, instead of the range before.
	 * @param {string} key
	 * @param {string} [from] the anchor, if there is none
	 */
	function extend(key, from = key) {
		const list = items();
		const index = (/** @type {string} */ wanted) => list.findIndex((item) => keyOf(item) === wanted);
		if (index(anchor) < 0) anchor = from;
		const [first, last] = [index(anchor), index(key)].sort((a, b) => a - b);
		const chosen = list.slice(first, last + 1);
		const kept = new Set(chosen);
		selection.set(range.filter((item) => !kept.has(item)), false);
		selection.set(chosen, true);
		range = chosen;
	}

	/** @param {EventTarget | null} target */
	const keyAt = (target) =>
		/** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest('[data-item]'))?.dataset
			.item;

	element.addEventListener('click', (event) => {
		const key = keyAt(event.target);
		if (key === undefined) return;
		if (event.target instanceof HTMLInputElement) {
			if (event.shiftKey) extend(key);
			else pick(key, event.target.checked);
			event.target.checked = selection.items.has(key);
		} else if ((event.ctrlKey || event.metaKey || event.shiftKey) && isLink(event.target)) {
			event.preventDefault(); // neither a new tab nor a new window
			if (event.shiftKey) extend(key);
			else pick(key, !selection.items.has(key));
		}
	});
	element.addEventListener('keydown', (event) => {
		const key = keyAt(event.target);
		if (event.key !== ' ' || key === undefined || !isLink(event.target)) return;
		event.preventDefault(); // no scrolling
		if (event.shiftKey) extend(key);
		else pick(key, !selection.items.has(key));
	});
	return { extend };
}

/** @param {EventTarget | null} target */
const isLink = (target) => Boolean(/** @type {Element} */ (target).closest('a'));
