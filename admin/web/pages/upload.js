// @ts-check
// Uploads: choosing or dropping files, the progress of each, its result.
import { get, isLogin, LoggedOutError, parse, route } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { plural, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { folderOf, itemsHash } from '../lib/links.js';
import { state, trackUpload } from '../lib/state.js';
import { uploadResumable } from '../lib/tus.js';
import { announce, explained, wide } from '../lib/ui.js';

const parallel = 3;
const resumableFrom = 8 << 20; // bytes; smaller files are sent again quickly

/**
 * The upload area of an alias: {element, choose}. At the end stored is called with the stored
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
	/** @type {ReturnType<typeof upload>[]} */
	const queue = [];
	/** @type {string[]} */
	let stored = [];
	let failed = 0;
	let running = 0;
	/** @type {(filenames: string[], stayed: boolean) => void} */
	let whenDone = () => {};
	/** @type {typeof whenDone | undefined} */
	let addedFor; // whenDone of the folder in which the last files were added
	const input = h('input', {
		type: 'file',
		multiple: true,
		id: 'upload-files',
		onchange: () => {
			add(input.files ?? []);
			input.value = '';
		},
	});
	const folder = h('input', {
		type: 'text',
		id: 'upload-folder',
		autocomplete: 'off',
		autocapitalize: 'none',
		spellcheck: 'false',
		placeholder: 'default of the storage',
		'aria-describedby': 'upload-folder-help',
	});
	const list = h('ul', { class: 'uploads', role: 'list', 'aria-label': 'Uploads', hidden: true });
	const clear = h('button', { type: 'button', class: 'small', hidden: true, onclick: tidy },
		'Clear the list');
	const summary = h('summary', null, 'Upload options');
	const room = wide();
	const options = h('details', { open: room.matches }, summary,
		h('div', { class: 'upload-line' },
			h('div', { class: 'tool grow' }, h('label', { for: 'upload-files' }, 'Files to upload'), input),
			h('div', { class: 'tool' }, h('label', { for: 'upload-folder' }, 'Sub folder'), folder)),
		h('p', { class: 'help', id: 'upload-folder-help' },
			'Choose files or drop them here. If the sub folder is empty, the storage chooses it, usually by date; ',
			h('code', null, '/'), ' is the root of the alias.'));
	room.addEventListener('change', () => {
		options.open ||= room.matches; // without a summary then
	});
	const element = h('section', { class: 'upload', 'aria-label': 'Upload' }, options, list, clear);

	/** @param {Iterable<Upload> & ArrayLike<Upload>} files */
	function add(files) {
		if (files.length === 0) return;
		const rows = [...files].map((file) => upload(alias, file, folder.value.trim()));
		list.append(...rows.map((row) => row.element));
		queue.push(...rows);
		addedFor = whenDone;
		list.hidden = false;
		clear.hidden = true;
		next();
	}

	function next() {
		while (running < parallel && queue.length > 0) {
			running++;
			start(/** @type {ReturnType<typeof upload>} */ (queue.shift()));
		}
	}

	/** @param {ReturnType<typeof upload>} row */
	async function start(row) {
		const filename = await row.run();
		running--;
		if (filename) stored.push(filename);
		else failed++;
		next();
		if (running === 0 && queue.length === 0) finish();
	}

	function finish() {
		clear.hidden = false;
		announce(
			[stored.length > 0 && `${plural(stored.length, 'file')} stored.`,
				failed > 0 && `${plural(failed, 'file')} not stored.`].filter(Boolean).join(' '),
		);
		// The user may be on another page by now, or back from one.
		if (stored.length > 0 && element.isConnected) whenDone(stored, addedFor === whenDone);
		stored = [];
		failed = 0;
	}

	function tidy() {
		list.replaceChildren();
		list.hidden = clear.hidden = true;
		(options.open ? input : summary).focus();
	}

	return {
		element,
		add,
		choose: () => input.click(),
		/**
		 * @param {Alias} alias
		 * @param {string} subFolder
		 * @param {(filenames: string[], stayed: boolean) => void} callback
		 */
		target: ({ extensions = [] }, subFolder, callback) => {
			input.accept = extensions.map((extension) => '.' + extension).join(',');
			folder.value = subFolder;
			whenDone = callback;
		},
	};
}

// Files may be dropped anywhere on a page with an upload area. On other pages drops are refused,
// since the browser would open the files.
function acceptDrops() {
	/** @returns {ReturnType<typeof uploadArea> | undefined} */
	const shown = () =>
		!document.querySelector('dialog[open]')
		&& [...state.uploadAreas.values()].find(({ element }) => element.isConnected);
	/** @param {boolean} on */
	const mark = (on) => {
		for (const { element } of state.uploadAreas.values()) element.classList.toggle('over', on);
	};
	/**
	 * @param {string} type
	 * @param {(event: any, area: ReturnType<typeof uploadArea> | undefined) => void} act
	 */
	const listen = (type, act) =>
		addEventListener(type, (/** @type {any} */ event) => {
			if (!event.dataTransfer?.types.includes('Files')) return; // text may be dropped into fields
			event.preventDefault();
			act(event, shown());
		});
	listen('dragover', (event, area) => {
		if (area) mark(true);
		else event.dataTransfer.dropEffect = 'none';
	});
	listen('dragleave', (event) => {
		if (!event.relatedTarget) mark(false);
	});
	listen('drop', (event, area) => {
		mark(false);
		if (area) area.add(filesOf(event.dataTransfer));
	});
}

acceptDrops();

/**
 * The files of a drop. A folder becomes an empty file marked as a folder.
 * @param {DataTransfer} dropped
 * @returns {Upload[]}
 */
function filesOf({ items, files }) {
	const folders = [...items].filter(({ kind }) => kind === 'file').map((item) =>
		item.webkitGetAsEntry?.()?.isDirectory
	);
	return [...files].map((file, i) => (folders[i] ? { name: file.name, size: 0, isFolder: true } : file));
}

/**
 * One file: a row with its progress. run returns the stored filename, or ''.
 * @param {Alias} alias
 * @param {Upload} file
 * @param {string} folder
 */
function upload(alias, file, folder) {
	const request = new XMLHttpRequest();
	const bar = h('progress', { max: '100', value: 0, 'aria-label': `Progress of ${file.name}` });
	const state = h('p', { class: 'muted small-text' }, 'Waiting');
	const cancel = h('button', {
		type: 'button',
		class: 'small',
		'aria-label': `Cancel ${file.name}`,
		onclick: stop,
	}, 'Cancel');
	const element = h('li', { tabindex: '-1' },
		h('div', { class: 'upload-name' }, h('span', null, file.name),
			h('span', { class: 'muted small-text' }, size(file.size))), bar, state, cancel);
	const cancelled = new AbortController();
	function stop() {
		cancelled.abort();
		request.abort();
		end('bad', 'Cancelled.');
		element.focus(); // the focused button is gone
	}
	/**
	 * @param {string} look
	 * @param {...Child} text
	 */
	function end(look, ...text) {
		element.className = look;
		bar.remove();
		cancel.remove();
		state.className = look === 'bad' ? 'upload-error' : 'small-text';
		fill(state, icon(look === 'bad' ? 'cross' : 'check'), h('span', null, text));
	}
	/** @param {{loaded: number, total: number}} event */
	function progress({ loaded, total }) {
		const percent = total ? Math.floor((loaded / total) * 100) : 0;
		bar.value = percent;
		state.textContent = percent < 100 ? `${percent} %` : 'Sent; the server is checking and storing it …';
	}
	/**
	 * @param {number} status
	 * @param {string | null} type
	 * @param {string} text
	 */
	function finished(status, type, text) {
		if (isLogin(status, type)) {
			end('bad', explained(new LoggedOutError(status)));
			return '';
		}
		const answer = parse(text) ?? {};
		const [result] = answer.result ?? [];
		if (!answer.success || !result) {
			const messages = answer.errors?.map((/** @type {Error} */ { message }) => message).join(' ');
			end('bad', messages || answer.error || `The server answered ${status}.`);
			return '';
		}
		end('good', 'Stored as ', h('a', {
			href: itemsHash(alias.kind, alias.name, folderOf(result.filename), { item: result.filename }),
		}, result.filename));
		return result.filename;
	}
	async function broken() { // also a redirect to the login of another host
		const error = await get(['session']).catch((failure) => failure);
		end('bad', error.loggedOut ? explained(error)
			: 'The connection broke. Check whether the file was stored before you send it again.');
		return '';
	}
	/**
	 * Sends a form, and sends it again if its answer is lost: with the key it is stored once.
	 * @param {File} whole
	 */
	const sendForm = (whole) =>
		new Promise((resolve) => {
			const body = new FormData();
			body.append('files[]', whole);
			const key = [...crypto.getRandomValues(new Uint32Array(4))].join('-');
			let left = 3; // attempts
			function send() {
				request.open('POST',
					route(['upload', alias.kind], { alias: alias.name, sub_folder: folder }));
				request.setRequestHeader('Idempotency-Key', key);
				request.send(body);
			}
			function again() {
				left--;
				state.textContent = 'The connection broke; sending it again …';
				setTimeout(() => (cancelled.signal.aborted ? resolve('') : send()), 1000);
			}
			request.upload.addEventListener('progress', progress);
			request.addEventListener('load', () => {
				const isRunning = request.status === 409 && request.getResponseHeader('Retry-After');
				if (isRunning && left > 0) again();
				else resolve(
						finished(request.status, request.getResponseHeader('Content-Type'),
							request.responseText),
					);
			});
			request.addEventListener('abort', () => resolve(''));
			request.addEventListener('error', () => (left > 0 ? again() : resolve(broken())));
			send();
		});
	/** @param {File} whole */
	async function sendResumable(whole) {
		const metadata = { filename: whole.name, alias: alias.name, sub_folder: folder };
		try {
			const answer = await uploadResumable(route(['upload', alias.kind, 'resumable']), whole, metadata,
				(sent) => progress({ loaded: sent, total: whole.size }), cancelled.signal);
			return answer ? finished(answer.status, answer.type, answer.text) : sendForm(whole);
		} catch {
			return cancelled.signal.aborted ? '' : broken();
		}
	}
	async function run() {
		if (!(file instanceof File)) {
			end('bad', 'A folder cannot be uploaded: choose the files in it.');
			return '';
		}
		if (cancelled.signal.aborted) return '';
		const over = trackUpload();
		state.textContent = '0 %';
		try {
			return await (file.size < resumableFrom ? sendForm(file) : sendResumable(file));
		} finally {
			over();
		}
	}
	return { element, run };
}
