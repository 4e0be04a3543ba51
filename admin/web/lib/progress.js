// @ts-check
// Actions on many items: their progress in a dialog, and what failed.
import { fill, h, newId } from './dom.js';
import { plural } from './format.js';
import { ask, openDialog } from './ui.js';

const shownFailures = 100;

/**
 * Runs work in a dialog with its progress, which the user can stop. Returns the number of done items
 * and the failures. An error of work ends it, and is the reason of the last failure without a name.
 * @param {string} title
 * @param {number} total 0 if it is unknown
 * @param {(progress: Progress) => Promise<void>} work
 */
export async function withProgress(title, total, work) {
	/** @type {{done: number, failed: Failure[], error: any, stopped: boolean}} */
	const result = { done: 0, failed: [], error: null, stopped: false };
	const id = newId('progress');
	const bar = h('progress', total ? { id, max: total, value: 0 } : { id });
	const text = h('label', { for: id }, 'Starting …');
	const button = h('button', {
		type: 'button',
		onclick: () => {
			result.stopped = true;
			button.setAttribute('aria-disabled', 'true');
			fill(button, 'Stopping …');
		},
	}, 'Stop');
	const dialog = openDialog(title, [text, bar, h('div', { class: 'actions' }, button)], { required: true });
	dialog.addEventListener('close', () => {
		result.stopped = true; // another page is shown
	});
	function show() {
		const ended = result.done + result.failed.length;
		if (total) bar.value = ended;
		const failures = result.failed.length > 0 && `, ${result.failed.length.toLocaleString('en')} failed`;
		fill(text,
			total ? `${ended.toLocaleString('en')} of ${plural(total, 'item')}` : plural(ended, 'item'),
			failures);
	}
	try {
		await work({
			stopped: () => result.stopped,
			done: (count) => {
				result.done += count;
				show();
			},
			fail: (filename, message) => {
				result.failed.push({ filename, message });
				show();
			},
		});
	} catch (error) {
		result.error = error;
	}
	dialog.close('');
	return result;
}

/**
 * Shows a result with failures by name.
 * @param {string} title
 * @param {...Child} content
 */
export const showResult = (title, ...content) =>
	ask(title, content, [{ text: 'Close', value: '', first: true }]);

/**
 * The failures, each with its name.
 * @param {Failure[]} failed
 */
export const failureList = (failed) =>
	failed.length > 0
	&& h('ul', { class: 'failures', role: 'list', 'aria-label': 'Failed', tabindex: '0' },
		failed.slice(0, shownFailures).map(({ filename, message }) =>
			h('li', null, h('strong', null, filename),
				h('span', { class: 'trouble' }, message.replace(/\balias\b/, 'library')))
		), failed.length > shownFailures
		&& h('li', null, `and ${plural(failed.length - shownFailures, 'item')} more`));

/**
 * Calls work for each entry, some at a time, until progress is stopped. After an error it begins no
 * further entry, and throws the error when all have ended.
 * @template T
 * @param {T[]} list
 * @param {number} parallel
 * @param {Progress | {stopped: () => boolean}} progress
 * @param {(entry: T) => Promise<void>} work
 */
export async function eachOf(list, parallel, progress, work) {
	const queue = [...list];
	async function worker() {
		try {
			while (queue.length > 0 && !progress.stopped()) await work(/** @type {T} */ (queue.shift()));
		} catch (error) {
			queue.length = 0;
			throw error;
		}
	}
	const ends = await Promise.allSettled(Array.from({ length: parallel }, worker));
	for (const end of ends) if (end.status === 'rejected') throw end.reason;
}
