// @ts-check
// Long lists: only the entries near the view are in the page.

/** The number of columns of a list, 1 without a grid. @param {HTMLElement} body */
export const columnsOf = (body) => getComputedStyle(body).gridTemplateColumns.split(' ').length;

/**
 * Removes an entry, and ends the loading of its images. The browser may forget them at once.
 * @param {Element | null} entry
 */
function drop(entry) {
	for (const image of entry?.querySelectorAll('img') ?? []) image.removeAttribute('src');
	entry?.remove();
}

/**
 * Keeps the entries near the view in a list, and space for the others. All rows have the same height,
 * which rowHeight returns. Until signal is aborted it follows scrolling.
 * @param {HTMLElement} list
 * @param {HTMLElement} body of the entries
 * @param {{count: () => number, make: (index: number) => HTMLElement, rowHeight: () => number,
 *   changed: (lostFocus: boolean) => void}} entries make returns a new entry; changed is called when
 *   others are shown, and lostFocus is whether the focused one is gone
 * @param {AbortSignal} signal
 */
export function windowOf(list, body, { count, make, rowHeight, changed }, signal) {
	const element = document.createElement('div');
	element.append(list);
	let [start, end] = [0, 0]; // the indexes that are in the page
	let asked = false;
	const seen = { index: 0, shape: '' }; // the first entry in view stays there if the window changes

	/** @param {number} index */
	const shown = (
		index,
	) => /** @type {HTMLElement | undefined} */ (index < start ? undefined : body.children[index - start]);

	/**
	 * @param {number} from
	 * @param {number} to
	 */
	const made = (from, to) => Array.from({ length: to - from }, (_, i) => make(from + i));

	/**
	 * Shows the entries of a range, and keeps those that are in it already.
	 * @param {number} from
	 * @param {number} to
	 */
	function range(from, to) {
		if (from === start && to === end) return;
		const hadFocus = body.contains(document.activeElement);
		if (to <= start || from >= end) {
			body.replaceChildren();
			start = end = from;
		}
		for (; start < from; start++) drop(body.firstElementChild);
		for (; end > to; end--) drop(body.lastElementChild);
		if (from < start) body.prepend(...made(from, start));
		if (to > end) body.append(...made(end, to));
		[start, end] = [from, to];
		changed(hadFocus && !body.contains(document.activeElement));
	}

	/** Shows what is near the view: one more window above and below it. */
	function place() {
		asked = false;
		if (!element.isConnected) return;
		if (count() === 0) { // the list is hidden, and has no columns
			range(0, 0);
			element.style.padding = '0';
			return;
		}
		const columns = columnsOf(body);
		const rows = Math.ceil(count() / columns);
		const height = rowHeight();
		const { top } = element.getBoundingClientRect();
		const first = Math.min(Math.max(Math.floor((-top - innerHeight) / height), 0), rows);
		const last = Math.min(Math.max(Math.ceil((2 * innerHeight - top) / height), first), rows);
		range(first * columns, Math.min(last * columns, count()));
		element.style.paddingTop = `${first * height}px`;
		element.style.paddingBottom = `${(rows - last) * height}px`;
		const shape = `${columns} columns, ${Math.round(height)} pixels`;
		const moved = shape === seen.shape ? 0 : top + Math.floor(seen.index / columns) * height;
		seen.shape = shape;
		if (seen.index > 0 && Math.abs(moved) >= 1) {
			scrollBy(0, moved);
			place();
		} else seen.index = Math.max(Math.floor(-top / height), 0) * columns;
	}

	function ask() {
		if (!asked) requestAnimationFrame(place);
		asked = true;
	}

	/** Makes all shown entries anew. */
	function redraw() {
		body.replaceChildren();
		start = end = 0;
		place();
	}

	/**
	 * Returns an entry, and brings it into the page.
	 * @param {number} index
	 */
	function show(index) {
		if (index < 0 || index >= count()) return undefined;
		if (!shown(index)) {
			const row = Math.floor(index / columnsOf(body));
			scrollBy(0, element.getBoundingClientRect().top + row * rowHeight() - innerHeight / 2);
			place();
		}
		return shown(index);
	}

	addEventListener('scroll', ask, { passive: true, signal });
	addEventListener('resize', ask, { signal });
	new ResizeObserver(ask).observe(element); // also when it comes into the page
	return {
		element,
		place,
		redraw,
		show,
		shown,
		/** @param {Element} entry */
		indexOf: (entry) => start + [...body.children].indexOf(entry),
	};
}
