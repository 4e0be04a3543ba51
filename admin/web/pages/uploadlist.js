// @ts-check
// The list of the uploads of an alias: the progress of all and of each, and what can be done about it.
import { fill, h } from '../lib/dom.js';
import { plural, size, timeLeft } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { folderOf, itemsHash } from '../lib/links.js';
import { remaining, totals } from '../lib/queue.js';
import { explained } from '../lib/ui.js';

const drawEvery = 100; // milliseconds

// The most rows of a state. A tree may have ten thousand files.
const mostRows = { running: 10, failed: 50, refused: 50, cancelled: 20, waiting: 20, stored: 20 };

/**
 * The entries that are listed, in their order: the last ones that were stored, the first of others.
 * @param {QueuedUpload[]} entries
 */
export function listed(entries) {
	const rows = new Set(Object.entries(mostRows).flatMap(([name, most]) => {
		const all = entries.filter(({ state }) => state === name);
		if (name !== 'stored') return all.slice(0, most);
		return all.slice(entries.length > 3 * most ? -3 : -most); // those that run should be in view
	}));
	return entries.filter((entry) => rows.has(entry));
}

/**
 * The list of a queue: {element, changed, draw, focus}. hidden are the paths of hidden files that were left
 * out, cleared is called when the list was cleared, drawnAnew after each change.
 * @param {Alias} alias
 * @param {ReturnType<typeof import('../lib/queue.js').uploadQueue>} queue
 * @param {Set<string>} hidden
 * @param {() => void} cleared
 * @param {() => void} drawnAnew
 */
export function uploadList(alias, queue, hidden, cleared, drawnAnew) {
	/** @type {Map<QueuedUpload, ReturnType<typeof uploadRow>>} */
	const rows = new Map();
	/** @type {import('../lib/queue.js').Sample[]} */
	const samples = [];
	/** @type {ReturnType<typeof setTimeout> | undefined} */
	let drawing;
	let drawn = 0;
	const line = h('p', { tabindex: '-1' });
	const bar = h('progress', { max: '100', value: 0, 'aria-label': 'Progress of all files' });
	const note = h('p', { class: 'muted small-text' });
	const trouble = h('p', { class: 'upload-error' });
	/**
	 * @param {string} text
	 * @param {() => void} act
	 */
	const button = (text, act) =>
		h('button', {
			type: 'button',
			class: 'small',
			onclick: () => {
				act();
				draw();
			},
		}, text);
	const cancelAll = button('Cancel all', () => queue.cancel());
	const againAll = button('', () => queue.again(toRepeat()));
	const clear = button('Clear the list', () => {
		queue.clear();
		hidden.clear();
		cleared();
	});
	const list = h('ul', { class: 'uploads', role: 'list', 'aria-label': 'Uploads' });
	const element = h('div', { class: 'upload-queue', hidden: true },
		h('div', { class: 'upload-total' }, line, bar, trouble, note,
			h('div', { class: 'actions' }, cancelAll, againAll, clear)), list);

	/** The files that “Again” sends: those that failed, else those that were cancelled. */
	function toRepeat() {
		const failed = queue.entries().filter(({ state }) => state === 'failed');
		return failed.length > 0 ? failed : queue.entries().filter(({ state }) => state === 'cancelled');
	}

	function changed() {
		drawing ??= setTimeout(draw, Math.max(0, drawn + drawEvery - Date.now()));
	}

	function draw() {
		clearTimeout(drawing);
		drawing = undefined;
		drawn = Date.now();
		const held = element.contains(document.activeElement);
		const entries = queue.entries();
		const sum = totals(entries);
		const pending = sum.running + sum.waiting;
		element.hidden = entries.length === 0 && hidden.size === 0;
		line.textContent = summary(entries.length, sum);
		line.hidden = entries.length === 0;
		bar.value = sum.bytes > 0 ? (sum.sent / sum.bytes) * 100 : 0;
		bar.hidden = sum.running === 0 || entries.length < 2;
		drawTrouble(sum.waiting);
		drawButtons(pending, sum.waiting);
		drawRows(entries);
		if (held && (document.activeElement === document.body || document.activeElement?.closest('[hidden]')))
			line.focus(); // the focused button is gone
		drawnAnew();
	}

	/**
	 * @param {number} files
	 * @param {ReturnType<typeof totals>} sum
	 */
	function summary(files, sum) {
		const pending = sum.running + sum.waiting;
		const failed = sum.failed + sum.refused + sum.cancelled;
		if (pending === 0 || queue.stopped() || queue.isGrowing()) samples.length = 0;
		const now = { time: Date.now(), bytes: sum.sent, files: sum.stored + failed };
		const time = sum.running > 0 && !queue.isGrowing()
			&& remaining(samples, now, { bytes: sum.bytes - sum.sent, files: pending });
		return [
			`${sum.stored.toLocaleString('en')} of ${plural(files, 'file')} stored`,
			queue.isGrowing() && 'still reading the folder',
			sum.running > 0 && `${sum.running} in progress`,
			sum.waiting > 0 && `${sum.waiting.toLocaleString('en')} waiting`,
			failed > 0 && `${failed.toLocaleString('en')} not stored`,
			pending > 0 && `${size(sum.sent)} of ${size(sum.bytes)} sent`,
			time && timeLeft(time),
		].filter(Boolean).join(', ');
	}

	/** @param {number} waiting */
	function drawTrouble(waiting) {
		const stopped = queue.stopped();
		trouble.hidden = !stopped || waiting === 0;
		if (trouble.hidden) fill(trouble);
		else if (!trouble.firstChild) {
			fill(trouble, icon('down'), h('span', null, 'The other files wait: ', explained(stopped)));
		}
	}

	/**
	 * @param {number} pending
	 * @param {number} waiting
	 */
	function drawButtons(pending, waiting) {
		const stopped = queue.stopped() !== null && waiting > 0;
		const again = toRepeat().length + (stopped ? waiting : 0);
		cancelAll.hidden = pending < 2 && !queue.isGrowing();
		againAll.hidden = again < 2;
		againAll.textContent = `Again: ${plural(again, 'file')}`;
		clear.hidden = pending > 0 || queue.isGrowing();
	}

	/** @param {QueuedUpload[]} entries */
	function drawRows(entries) {
		const shown = new Set(listed(entries));
		for (const [entry, row] of rows) {
			if (shown.has(entry)) continue;
			row.element.remove();
			rows.delete(entry);
		}
		let before = list.firstElementChild;
		for (const entry of shown) {
			const row = rows.get(entry) ?? uploadRow(alias, entry, queue);
			if (!rows.has(entry)) list.insertBefore(row.element, before);
			else before = row.element.nextElementSibling;
			rows.set(entry, row);
			row.draw();
		}
		list.hidden = shown.size === 0;
		note.textContent = [
			hidden.size > 0 && `${plural(hidden.size, 'hidden file')} left out.`,
			shown.size < entries.length && `${shown.size} of the files are listed.`,
		].filter(Boolean).join(' ');
		note.hidden = note.textContent === '';
	}

	/** Shows the list, with what was refused. */
	function focus() {
		line.focus({ preventScroll: true });
		(list.querySelector('.bad') ?? element).scrollIntoView({ block: 'center' });
	}

	return { element, changed, draw, focus };
}

/**
 * One file.
 * @param {Alias} alias
 * @param {QueuedUpload} entry
 * @param {ReturnType<typeof import('../lib/queue.js').uploadQueue>} queue
 */
function uploadRow(alias, entry, queue) {
	const { upload } = entry;
	const path = [upload.folder, upload.name].filter(Boolean).join('/');
	const bar = h('progress', { max: '100', value: 0, 'aria-label': `Progress of ${path}` });
	const text = h('p', { class: 'muted small-text' });
	const element = h('li', { tabindex: '-1' },
		h('div', { class: 'upload-name' }, h('span', null, path),
			h('span', { class: 'muted small-text' }, size(entry.size))), bar, text);
	/** @type {HTMLElement | null} */
	let button = null;
	let drawn = '';

	/**
	 * @param {string} word of the button, '' for none
	 * @param {(list: QueuedUpload[]) => void} [act]
	 */
	function offer(word, act) {
		if ((button?.textContent ?? '') === word) return;
		if (button === document.activeElement) element.focus(); // the focused button goes
		button?.remove();
		button = word === '' ? null : h('button', {
			type: 'button',
			class: 'small',
			'aria-label': `${word} ${path}`,
			onclick: () => {
				element.focus();
				act?.([entry]);
			},
		}, word);
		if (button) element.append(button);
	}

	/**
	 * @param {string} look
	 * @param {...Child} words
	 */
	function end(look, ...words) {
		element.className = look;
		text.className = look === 'bad' ? 'upload-error' : 'small-text';
		fill(text, icon(look === 'bad' ? 'cross' : 'check'), h('span', null, words));
	}

	function draw() {
		const { state } = entry;
		const percent = entry.size > 0 ? Math.min(100, Math.floor((entry.sent / entry.size) * 100)) : 0;
		const now = `${state} ${percent} ${entry.interrupted}`;
		if (now === drawn) return;
		drawn = now;
		const pending = state === 'waiting' || state === 'running';
		bar.hidden = state !== 'running';
		bar.value = percent;
		if (pending) {
			element.className = '';
			text.className = 'muted small-text';
			text.textContent = state === 'waiting' ? 'Waiting' : entry.interrupted
				? `${entry.interrupted} Sending it again …` : percent < 100 ? `${percent} %`
				: 'Sent; the server is checking and storing it …';
			offer('Cancel', queue.cancel);
		} else if (state === 'stored') {
			const filename = entry.filename ?? '';
			end('good', 'Stored as ', h('a', {
				href: itemsHash(alias.kind, alias.name, folderOf(filename), { item: filename }),
			}, filename));
			offer('');
		} else {
			end('bad', state === 'cancelled' ? 'Cancelled.' : explained(entry.error));
			offer(state === 'refused' ? '' : 'Again', queue.again);
		}
	}
	return { element, draw };
}
