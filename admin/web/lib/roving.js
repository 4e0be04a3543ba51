// @ts-check
// Lists with one tab stop, in which arrow keys move.
import { columnsOf } from './window.js';

/**
 * Makes a list of entries one tab stop: arrow keys, Home and End move between the first links of its
 * entries. The controls of the current entry can be reached by Tab. moved is called after a move by
 * arrow keys; more loads further entries. at returns an entry, and brings it into the page; shown
 * only returns one that is there.
 * @param {HTMLElement} body
 * @param {{count: () => number, at: (index: number) => Element | undefined,
 *   shown: (index: number) => Element | undefined, indexOf: (entry: Element) => number,
 *   moved?: (from: number, to: number, event: KeyboardEvent) => void, more?: () => Promise<any>}} [list]
 *   by default the children of body
 */
export function roving(body, list = childrenOf(body)) {
	let current = 0;
	/** @type {Element | undefined} */
	let stop;
	/** @param {Element} [entry] */
	const controls = (
		entry,
	) => /** @type {NodeListOf<HTMLElement>} */ (entry?.querySelectorAll('a, input, button') ?? []);
	/** @param {EventTarget | null} target */
	const entryOf = (target) => {
		let element = /** @type {Element | null} */ (target);
		while (element && element.parentElement !== body) element = element.parentElement;
		return element;
	};

	/** Lets Tab reach the current entry, or the first one in the page. */
	function update() {
		const entry = list.shown(current) ?? body.firstElementChild ?? undefined;
		if (entry === stop) return;
		for (const control of controls(stop)) control.tabIndex = -1;
		for (const control of controls(entry)) control.tabIndex = 0;
		stop = entry;
	}

	/** @param {number} index */
	function stopAt(index) {
		current = Math.max(index, 0);
		update();
	}

	/**
	 * The index after a key, -1 for other keys. It may be beyond the last entry.
	 * @param {string} key
	 */
	function target(key) {
		const [columns, count] = [columnsOf(body), list.count()];
		if (key === 'Home') return 0;
		if (key === 'End') return count - 1;
		if (key === 'ArrowUp') return current - columns;
		if (key === 'ArrowLeft' && columns > 1) return current - 1;
		if (key === 'ArrowRight' && columns > 1) return current + 1;
		if (key !== 'ArrowDown') return -1;
		const isLastRow = Math.floor(current / columns) === Math.floor((count - 1) / columns);
		return isLastRow ? current + columns : Math.min(current + columns, count - 1);
	}

	/** @param {KeyboardEvent} event */
	async function onkeydown(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || list.count() === 0) return;
		const from = current;
		const wanted = target(event.key);
		if (wanted < 0) return;
		event.preventDefault();
		if (wanted >= list.count()) await list.more?.();
		if (wanted === from || !focus(wanted)) return;
		list.moved?.(from, wanted, event);
	}

	/** @param {number} [index] */
	function focus(index = current) {
		const link = list.at(index)?.querySelector('a');
		link?.focus();
		return Boolean(link);
	}

	body.addEventListener('keydown', onkeydown);
	body.addEventListener('focusin', ({ target }) => {
		const entry = entryOf(target);
		if (entry) stopAt(list.indexOf(entry));
	});
	return { update, stopAt, focus, onkeydown, current: () => current };
}

/** @param {HTMLElement} body */
const childrenOf = (body) => ({
	count: () => body.children.length,
	at: (/** @type {number} */ index) => body.children[index],
	shown: (/** @type {number} */ index) => body.children[index],
	indexOf: (/** @type {Element} */ entry) => [...body.children].indexOf(entry),
});
