// @ts-check
// The unfinished resumable uploads, of all storages.
import { get, send } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { plural, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { mayAct } from '../lib/state.js';
import { announce, busyWhile, confirm, details, empty, explained, facts, once, pageHead, rowList,
	time } from '../lib/ui.js';

const pageSize = 60;

/** @type {Record<string, string>} */
const origins = { http: 'Account', panel: 'User of the panel' };

/**
 * The page of the unfinished uploads.
 * @param {PageContext} context
 * @returns {Promise<Page>}
 */
export async function uploads({ signal, reload }) {
	/** @type {UploadsAnswer} */
	const first = await get(['uploads'], { limit: pageSize }, signal);
	const list = rowList('Unfinished uploads', first.uploads.map(row));
	const problems = h('div', null, first.problems.map(problem));
	const status = h('p', { class: 'muted', role: 'status', tabindex: '-1' });
	const more = h('button', { type: 'button', onclick: loadMore }, 'Show more');
	let { next } = first;
	let count = first.uploads.length;

	function describe() {
		status.textContent = count === 0 && next ? 'None so far.'
			: count > 0 ? plural(count, 'upload') + (next ? ' shown, there are more.' : '.') : '';
		list.hidden = count === 0;
		more.hidden = !next;
	}

	function loadMore() {
		return once(more, async () => {
			try {
				/** @type {UploadsAnswer} */
				const page = await get(['uploads'], { limit: pageSize, cursor: next }, signal);
				const rows = page.uploads.map(row);
				list.append(...rows);
				problems.append(...page.problems.map(problem));
				({ next } = page);
				count += rows.length;
				describe();
				(rows[0]?.querySelector('h2') ?? status).focus();
			} catch (error) {
				fill(status, explained(error));
			}
		});
	}

	/** @param {UnfinishedUpload} upload */
	function row(upload) {
		return h('li', { class: 'row' }, h('div', { class: 'row-icon' }, icon('upload')),
			h('div', { class: 'row-main' }, h('h2', { class: 'path', tabindex: '-1' }, nameOf(upload)),
				progressOf(upload), facts({
					[origins[upload.origin] ?? 'Origin']: upload.account || upload.origin,
					User: upload.user,
					Alias: upload.alias && `${upload.alias} (${upload.kind === 'img' ? 'images' : 'files'})`,
					'Sub folder': upload.sub_folder,
					Storage: upload.storage,
					Created: time(upload.created),
					'Last byte': time(upload.last_byte),
					Expires: time(upload.expires),
				}, 'facts inline')), mayAct() && h('div', { class: 'row-actions' }, h('button', {
					type: 'button',
					'aria-label': `End the upload of ${nameOf(upload)}`,
					onclick: (event) => end(event.currentTarget, upload, reload),
				}, 'End')));
	}

	describe();
	return {
		title: 'Uploads',
		content: [
			pageHead('Uploads',
				h('button', { type: 'button', onclick: () => reload() }, icon('refresh'), 'Refresh')),
			h('p', { class: 'lead' },
				'Resumable uploads that are not finished, and held ones that wait for their form. '
					+ 'Each ends by itself some time after its last byte.'),
			problems,
			first.on
				? count === 0 && !next
					&& empty('upload', 'No unfinished upload',
						'Resumable uploads appear here from their first request until their last byte.')
				: empty('upload', 'Resumable uploads are off', 'The configuration has `resumable off`.'),
			list,
			h('div', { class: 'more-line' }, status, more),
		],
	};
}

/** @param {UnfinishedUpload} upload */
const nameOf = ({ filename, partial }) => filename || (partial ? 'A part of another upload' : 'No name');

/** @param {UnfinishedUpload} upload */
function progressOf({ offset, length, held }) {
	if (length === null) return h('p', { class: 'muted' }, `${size(offset)} so far`);
	if (held) return h('p', { class: 'muted' }, `${size(length)}, waits for its form`);
	const percent = length > 0 ? Math.floor((offset / length) * 100) : 100;
	return h('p', { class: 'muted' }, `${size(offset)} of ${size(length)}, ${percent} %`);
}

/** @param {{storage: string, message: string, detail: string}} problem */
const problem = ({ storage, message, detail }) =>
	h('div', { class: 'notice bad', role: 'alert' }, icon('down'),
		h('div', null,
			h('p', null, h('strong', null, `Uploads on “${storage}” may be missing here. `), message),
			details(detail)));

/**
 * @param {HTMLElement} button
 * @param {UnfinishedUpload} upload
 * @param {() => void} reload
 */
async function end(button, upload, reload) {
	const text = 'Its bytes are removed, and its client must start again.';
	if (!await confirm(`End the upload of “${nameOf(upload)}”?`, h('p', null, text), 'End the upload'))
		return;
	await busyWhile(button, 'The upload was not ended', async () => {
		await send('DELETE', ['uploads', upload.storage, upload.name]);
		announce(`The upload of “${nameOf(upload)}” is ended.`);
		reload();
	});
}
