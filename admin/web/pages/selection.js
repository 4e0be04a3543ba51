// @ts-check
// The selected items of a list, and how they are selected by mouse, touch and keyboard.

/** The most items that can be selected at once. */
export const maxSelected = 10_000;

/** The selected items by filename, in the order of their selection. */
export function newSelection() {
	/** @type {Map<string, Item>} */
	const items = new Map();
	/** @type {((filenames: string[]) => void)[]} */
	const listeners = [];
	/**
	 * @param {Item[]} list
	 * @param {boolean} on
	 */
	function set(list, on) {
		const changed = list.filter(({ filename }) => items.has(filename) !== on);
		for (const item of changed) {
			if (!on) items.delete(item.filename);
			else if (items.size < maxSelected) items.set(item.filename, item);
		}
		if (changed.length > 0) notify(changed.map(({ filename }) => filename));
	}
	/** @param {string[]} filenames */
	const notify = (filenames) => listeners.forEach((listener) => listener(filenames));
	return {
		items,
		set,
		clear: () => set([...items.values()], false),
		/** @param {(filenames: string[]) => void} listener is called with the filenames that changed */
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
	/** @param {string} filename */
	const find = (filename) => items().find((item) => item.filename === filename);

	/**
	 * @param {string} filename
	 * @param {boolean} on
	 */
	function pick(filename, on) {
		const item = find(filename);
		if (!item) return;
		anchor = filename;
		range = [];
		selection.set([item], on);
	}

	/**
	 * Selects from the anchor to an item, instead of the range before.
	 * @param {string} filename
	 * @param {string} [from] the anchor, if there is none
	 */
	function extend(filename, from = filename) {
		const list = items();
		const index = (/** @type {string} */ name) => list.findIndex((item) => item.filename === name);
		if (index(anchor) < 0) anchor = from;
		const [first, last] = [index(anchor), index(filename)].sort((a, b) => a - b);
		const wanted = list.slice(first, last + 1);
		const kept = new Set(wanted);
		selection.set(range.filter((item) => !kept.has(item)), false);
		selection.set(wanted, true);
		range = wanted;
	}

	/** @param {EventTarget | null} target */
	const filenameOf = (target) =>
		/** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest('[data-item]'))?.dataset
			.item;

	element.addEventListener('click', (event) => {
		const filename = filenameOf(event.target);
		if (filename === undefined) return;
		if (event.target instanceof HTMLInputElement) {
			if (event.shiftKey) extend(filename);
			else pick(filename, event.target.checked);
			event.target.checked = selection.items.has(filename);
		} else if ((event.ctrlKey || event.metaKey || event.shiftKey) && isLink(event.target)) {
			event.preventDefault(); // neither a new tab nor a new window
			if (event.shiftKey) extend(filename);
			else pick(filename, !selection.items.has(filename));
		}
	});
	element.addEventListener('keydown', (event) => {
		const filename = filenameOf(event.target);
		if (event.key !== ' ' || filename === undefined || !isLink(event.target)) return;
		event.preventDefault(); // no scrolling
		if (event.shiftKey) extend(filename);
		else pick(filename, !selection.items.has(filename));
	});
	return { extend };
}

/** @param {EventTarget | null} target */
const isLink = (target) => Boolean(/** @type {Element} */ (target).closest('a'));
