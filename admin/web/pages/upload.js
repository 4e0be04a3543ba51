// @ts-check
// The upload area of an alias: files are chosen, dropped or pasted, and their queue is shown.
import { byId, fill, h, newId } from '../lib/dom.js';
import { acceptedExtensions, below, chosen, entriesOf, named, refusal, walk } from '../lib/files.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { itemsHash } from '../lib/links.js';
import { totals, uploadQueue } from '../lib/queue.js';
import { state } from '../lib/state.js';
import { transfer } from '../lib/transfer.js';
import { announce } from '../lib/ui.js';
import { uploadList } from './uploadlist.js';

/**
 * The upload area of an alias: {element, toggle, choose, fold}. At the end stored is called with the stored
 * filenames, and whether the user has stayed where the files were added.
 * @param {Alias} alias
 * @param {string} folder
 * @param {(filenames: string[], stayed: boolean) => void} stored
 */
export function uploader(alias, folder, stored) {
	const key = `${alias.kind}/${alias.name}`;
	const area = state.uploadAreas.get(key) ?? uploadArea(alias);
	state.uploadAreas.set(key, area);
	area.target(alias, folder, stored);
	return area;
}

/** @param {Alias} alias */
function uploadArea(alias) {
	const queue = uploadQueue(send, () => list.changed(), finish);
	/** @type {Set<string>} */
	const hidden = new Set();
	/** @type {(filenames: string[], stayed: boolean) => void} */
	let whenDone = () => {};
	/** @type {typeof whenDone | undefined} */
	let addedFor; // whenDone of the folder in which the last files were added
	let shownFolder = '';
	let link = ''; // to the page on which they were added

	const input = h('input', {
		type: 'file',
		multiple: true,
		hidden: true,
		'aria-label': 'Files to upload',
		onchange: () => {
			add([[...input.files ?? []].map((file) => ({ file, name: file.name, folder: '' }))]);
			input.value = '';
		},
	});
	const tree = h('input', {
		type: 'file',
		webkitdirectory: true,
		hidden: true,
		onchange: () => {
			add([chosen(tree.files ?? [], hidden)]);
			tree.value = '';
		},
	});
	const folder = h('input', {
		type: 'text',
		id: 'upload-folder',
		autocomplete: 'off',
		autocapitalize: 'none',
		spellcheck: 'false',
		placeholder: 'usually that of the date',
		'aria-describedby': 'upload-folder-help',
	});
	const choose = h('button', { type: 'button', onclick: () => input.click() }, icon('file'),
		'Choose files');
	const options = h('div', { id: newId('upload-options'), hidden: true },
		h('div', { class: 'upload-line' },
			h('div', { class: 'actions' }, choose, input,
				h('button', { type: 'button', onclick: () => tree.click() }, icon('folder'),
					'Choose a folder'), tree),
			h('div', { class: 'tool' }, h('label', { for: 'upload-folder' }, 'Into the folder'), folder)),
		h('p', { class: 'help', id: 'upload-folder-help' },
			'Choose files or a folder, or drop or paste them on this page. Without a folder they go into one ',
			'that is usually named by the date, and a folder keeps its name and tree. ', h('code', null, '/'),
			' is the top folder.'));
	const toggle = h('button', {
		type: 'button',
		'aria-label': 'Upload options',
		'aria-expanded': 'false',
		'aria-controls': options.id,
		onclick: () => {
			toggled = true;
			show(Boolean(options.hidden));
		},
	}, h('span', { class: 'wide-only' }, 'Upload options'), icon('expand'));
	let toggled = false; // by the user in this folder
	const list = uploadList(alias, queue, hidden, () => (options.hidden ? toggle : choose).focus(), away);
	const element = h('section', { class: 'upload', 'aria-label': 'Upload', hidden: true }, options,
		list.element);
	const elsewhere = h('aside', { class: 'notice', 'aria-label': `Uploads to ${alias.name}`, hidden: true },
		icon('uploads'), h('p', null, h('span'), ' ', h('a', null, 'Show')));
	byId('elsewhere').append(elsewhere);

	/** @param {boolean} open whether the options are shown */
	function show(open) {
		options.hidden = !open;
		toggle.setAttribute('aria-expanded', String(open));
		away();
	}

	/** The way to the list of the uploads, which a message offers. */
	const toList = { text: 'Show', act: () => list.focus() };

	/**
	 * @param {QueuedUpload} entry
	 * @param {AbortSignal} signal
	 */
	function send(entry, signal) {
		const file = /** @type {File} */ (entry.upload.file);
		return transfer(alias, file, entry.subFolder, entry.attempt, (sent, interruption) => {
			entry.interrupted = interruption;
			entry.sent = sent ?? entry.sent;
			list.changed();
		}, signal);
	}

	/**
	 * Adds files: a list, or lists that are read from folders.
	 * @param {Iterable<Upload[]> | AsyncIterable<Upload[]>} lists
	 * @param {boolean} [pasted]
	 */
	async function add(lists, pasted = false) {
		const target = folder.value.trim();
		const addition = queue.adding();
		let trees = false;
		/** @type {string[]} */
		const names = [];
		addedFor = whenDone;
		if (!toggled) show(false); // the list takes their place
		link = itemsHash(alias.kind, alias.name, shownFolder);
		for await (const list of lists) {
			if (addition.cancelled) break;
			const uploads = pasted ? list.map(withName) : list;
			names.push(...uploads.map(({ name }) => name));
			trees ||= uploads.some((upload) => upload.folder !== '');
			queue.add(uploads.map((upload) => {
				const subFolder = below(target, upload.folder);
				return { upload, subFolder, refused: refusal(alias, upload, subFolder) };
			}));
		}
		if (names.length === 0) announce('There is no file to upload.');
		else if (pasted)
			announce(names.length > 1 ? `${plural(names.length, 'file')} pasted.` : `Pasted: ${names[0]}`);
		else if (element.getBoundingClientRect().bottom < 0) // it is above the view
			announce(`${plural(names.length, 'file')} added.`, { action: toList });
		else if (trees) announce(`${plural(names.length, 'file')} added.`, { visible: false });
		addition.done();
	}

	/** @param {QueuedUpload[]} ended */
	function finish(ended) {
		list.draw();
		const stored = ended.flatMap(({ filename }) => filename ?? []);
		const failed = ended.length - stored.length;
		const reason = ended.find(({ state }) => state === 'failed' || state === 'refused');
		const { waiting } = totals(queue.entries());
		announce(
			[stored.length > 0 && `${plural(stored.length, 'file')} stored.`,
				failed > 0 && `${plural(failed, 'file')} not stored.`,
				waiting > 0 && `${plural(waiting, 'file')} waiting.`,
				reason && `${reason.upload.name}: ${reason.error.message.replaceAll('`', '')}`].filter(
					Boolean,
				).join(' '),
			{ action: reason && element.isConnected ? toList : undefined },
		);
		// The user may be on another page by now, or back from one.
		if (stored.length > 0 && element.isConnected) whenDone(stored, addedFor === whenDone);
	}

	/** Shows on other pages that uploads are in progress, or have failed. */
	function away() {
		element.hidden = options.hidden && list.element.hidden;
		const { running, waiting, failed, bytes, sent } = totals(queue.entries());
		const pending = running + waiting;
		elsewhere.hidden = element.isConnected || pending + failed === 0;
		const [text, anchor] = elsewhere.querySelectorAll('span, a');
		text.textContent = pending > 0
			? `${plural(pending, 'upload')} in progress, ${Math.floor(100 * sent / Math.max(1, bytes))} %.`
			: `${plural(failed, 'file')} not stored.`;
		anchor.setAttribute('href', link);
	}

	return {
		element,
		toggle,
		add,
		/**
		 * Shows the options where there is nothing else to show, unless the user has chosen.
		 * @param {boolean} filled whether the folder has items
		 */
		fold: (filled) => {
			if (!toggled) show(!filled);
		},
		/** Where files go, for a message. */
		place: () => [alias.name, folder.value.trim()].filter(Boolean).join(' / '),
		/** @param {DataTransfer} data */
		addFrom: (data, pasted = false) => add(walk(entriesOf(data), hidden), pasted),
		choose: () => input.click(),
		/** Whether files would be lost with the page. */
		pending: () =>
			queue.entries().some(({ state, error }) =>
				state === 'waiting' || state === 'running' || (state === 'failed' && error.loggedOut)
			),
		away,
		/**
		 * @param {Alias} current
		 * @param {string} subFolder
		 * @param {(filenames: string[], stayed: boolean) => void} callback
		 */
		target: (current, subFolder, callback) => {
			if (subFolder !== shownFolder) toggled = false;
			alias = current; // its limits may be others by now
			input.accept = acceptedExtensions(alias).map((extension) => '.' + extension).join(',');
			folder.value = shownFolder = subFolder;
			whenDone = callback;
		},
	};
}

/** @type {Set<string>} */
const pastedNames = new Set();

/**
 * @param {Upload} upload
 * @returns {Upload}
 */
function withName(upload) {
	const file = upload.file && named(upload.file, new Date(), pastedNames);
	return { ...upload, file, name: file?.name ?? upload.name };
}

/**
 * The upload area on the page, unless a dialog covers it.
 * @returns {ReturnType<typeof uploadArea> | undefined}
 */
const shownArea = () =>
	document.querySelector('dialog[open]') ? undefined
		: [...state.uploadAreas.values()].find(({ element }) => element.isConnected);

// Files may be dropped anywhere on a page with an upload area. On other pages drops are refused,
// since the browser would open the files.
function acceptDrops() {
	let own = false; // something of the page itself is dragged, which may be a picture
	const text = h('p');
	const target = h('div', { class: 'drop-target', 'aria-hidden': 'true', hidden: true }, icon('upload'),
		text);
	document.body.append(target);
	/** @param {ReturnType<typeof uploadArea>} [area] into which files would be dropped */
	const mark = (area) => {
		target.hidden = !area;
		fill(text, area && `Drop to upload to ${area.place()}`);
	};
	/**
	 * @param {string} type
	 * @param {(event: any, area: ReturnType<typeof uploadArea> | undefined) => void} act
	 */
	const listen = (type, act) =>
		addEventListener(type, (/** @type {any} */ event) => {
			if (!event.dataTransfer?.types.includes('Files')) return; // text may be dropped into fields
			event.preventDefault();
			act(event, own ? undefined : shownArea());
		});
	addEventListener('dragstart', () => {
		own = true;
	});
	addEventListener('pointermove', () => { // there is none during a drag
		own = false;
	});
	listen('dragover', (event, area) => {
		if (area) mark(area);
		else event.dataTransfer.dropEffect = 'none';
	});
	listen('dragleave', (event) => {
		if (!event.relatedTarget) mark();
	});
	listen('drop', (event, area) => {
		mark();
		area?.addFrom(event.dataTransfer);
	});
}

// Files and pictures may be pasted on such a page, except while a text is edited.
function acceptPaste() {
	addEventListener('paste', (event) => {
		const area = shownArea();
		const target = /** @type {Element} */ (event.target);
		if (!area || target.closest('textarea, input:not([type="checkbox"], [type="radio"], [type="file"])')
			|| !event.clipboardData?.types.includes('Files')) return;
		event.preventDefault();
		area.addFrom(event.clipboardData, true);
	});
}

acceptDrops();
acceptPaste();
