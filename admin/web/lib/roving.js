// @ts-check
// Lists with one tab stop, in which arrow keys move.

/**
 * Makes a list of entries one tab stop: arrow keys, Home and End move between the first links of its
 * entries. The controls of the current entry can be reached by Tab. moved is called after a move by
 * arrow keys; more loads further entries.
 * @param {HTMLElement} body
 * @param {{moved?: (from: HTMLElement, to: HTMLElement, event: KeyboardEvent) => void,
 *   more?: () => Promise<any>}} [options]
 */
export function roving(body, { moved, more } = {}) {
	/** @type {HTMLElement | null} */
	let current = null;
	/** @param {Element | null} entry */
	const controls = (
		entry,
	) => /** @type {NodeListOf<HTMLElement>} */ (entry?.querySelectorAll('a, input, button') ?? []);
	const entries = () => /** @type {HTMLElement[]} */ ([...body.children]);
	/** @param {EventTarget | null} target */
	const entryOf = (target) => {
		let element = /** @type {HTMLElement | null} */ (target);
		while (element && element.parentElement !== body) element = element.parentElement;
		return element;
	};

	/** @param {HTMLElement | null} entry */
	function stopAt(entry) {
		if (!entry || entry === current) return;
		for (const control of controls(current)) control.tabIndex = -1;
		for (const control of controls(entry)) control.tabIndex = 0;
		current = entry;
	}

	/** Takes new entries in: only the current one can be reached by Tab. */
	function update() {
		if (!current?.isConnected || current.parentElement !== body) stopAt(entries()[0] ?? null);
	}

	/**
	 * The index after a key, -1 for other keys. It may be beyond the last entry.
	 * @param {string} key
	 * @param {number} index
	 * @param {number} count
	 */
	function target(key, index, count) {
		const columns = getComputedStyle(body).gridTemplateColumns.split(' ').length;
		if (key === 'Home') return 0;
		if (key === 'End') return count - 1;
		if (key === 'ArrowUp') return index - columns;
		if (key === 'ArrowLeft' && columns > 1) return index - 1;
		if (key === 'ArrowRight' && columns > 1) return index + 1;
		if (key !== 'ArrowDown') return -1;
		const isLastRow = Math.floor(index / columns) === Math.floor((count - 1) / columns);
		return isLastRow ? index + columns : Math.min(index + columns, count - 1);
	}

	/** @param {KeyboardEvent} event */
	async function onkeydown(event) {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		const from = entryOf(event.target);
		if (!from) return;
		const index = entries().indexOf(from);
		const wanted = target(event.key, index, entries().length);
		if (wanted < 0) return;
		event.preventDefault();
		if (wanted >= entries().length) await more?.();
		const to = entries()[wanted];
		if (!to || to === from) return;
		to.querySelector('a')?.focus();
		moved?.(from, to, event);
	}

	body.addEventListener('keydown', onkeydown);
	body.addEventListener('focusin', ({ target }) => stopAt(entryOf(target)));
	return { update, stopAt, current: () => (current?.isConnected ? current : null) };
}
