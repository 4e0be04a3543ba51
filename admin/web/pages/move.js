// @ts-check
// Moves items to another folder or alias.
import { get, post } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { folderOf, itemsHash, nameOf, parts } from '../lib/links.js';
import { eachOf, failureList, showResult, withProgress } from '../lib/progress.js';
import { announce, explained, openDialog } from '../lib/ui.js';

const parallel = 4;
const suggestions = 200;

/**
 * Asks for the target, and moves the items, one by one. Those that failed stay selected.
 * @param {Scope} scope
 * @param {Alias[]} aliases
 * @param {Item[]} items
 * @param {Listing} list
 */
export async function moveItems({ alias, folder, search }, aliases, items, list) {
	const total = plural(items.length, 'item');
	const target = await askTarget(`Move ${total}`, alias, folder,
		aliases.filter(({ kind }) => kind === alias.kind));
	if (!target) return;
	let into = target.folder; // as the library names it, once an item is there
	const isSame = target.alias === alias.name;
	const replaces = aliases.some(({ kind, name, overwrite }) =>
		overwrite && kind === alias.kind && name === target.alias
	);
	/** @type {Set<string>} */
	const names = new Set();
	const { done, failed, error } = await withProgress(`Moving ${total}`, items.length, async (progress) => {
		await eachOf(items, parallel, progress, async ({ filename }) => {
			const name = nameOf(filename);
			if (names.has(name)) {
				progress.fail(filename, 'Another selected item has the same name.');
				return;
			}
			names.add(name);
			/** @type {[string, string][]} */
			const fields = [['to', target.folder ? `${target.folder}/${name}` : name]];
			if (replaces) fields.push(['overwrite', 'no']); // others get another name by themselves
			if (!isSame) fields.push(['to_alias', target.alias]);
			try {
				const { result } = await post(['items', alias.kind, alias.name, ...parts(filename)], fields);
				into = folderOf(result[0].filename);
			} catch (failure) {
				if (isOfAll(failure)) throw failure;
				progress.fail(filename, failure.message);
				return;
			}
			progress.done(1);
			if (!isSame || search || into !== folder) list.remove(filename);
		});
	});
	if (search || (isSame && into === folder)) list.load();
	const where = into || `the top folder of ${target.alias}`;
	const open = h('a', { href: itemsHash(alias.kind, target.alias, into) }, `Open ${where}`);
	if (done > 0) announce(`${plural(done, 'item')} moved to ${where}.`, { visible: false });
	await showResult(done === items.length ? `${total} moved` : `${done} of ${total} moved`,
		h('p', null, open), error && h('p', { class: 'trouble' }, explained(error)), failureList(failed));
	list.regainFocus();
}

/**
 * Whether a failure concerns the other items too: the end of the session, too many requests, or a
 * server or storage that does not work.
 * @param {any} failure
 */
const isOfAll = ({ loggedOut, status = 0 }) => loggedOut || status === 0 || status === 429 || status >= 500;

/**
 * Asks for an alias and a folder, which can be typed or chosen; null if the user cancels.
 * @param {string} title
 * @param {Alias} alias
 * @param {string} folder
 * @param {Alias[]} aliases
 * @returns {Promise<{alias: string, folder: string} | null>}
 */
function askTarget(title, alias, folder, aliases) {
	const select = h('select', { id: 'move-alias', onchange: () => browse('') },
		aliases.map(({ name }) => h('option', { value: name, selected: name === alias.name }, name)));
	const input = h('input', {
		id: 'move-folder',
		type: 'text',
		autocomplete: 'off',
		autocapitalize: 'none',
		spellcheck: 'false',
		placeholder: 'the top folder',
		'aria-describedby': 'move-help',
		oninput: () => list(),
	});
	const folders = h('div', { class: 'folder-choice', role: 'group', 'aria-label': 'Folders' });
	const form = h('form', { class: 'move' }, aliases.length > 1
		&& h('div', { class: 'tool' }, h('label', { for: 'move-alias' }, 'Library'), select),
		h('div', { class: 'tool' }, h('label', { for: 'move-folder' }, 'Folder'), input), folders,
		h('p', { class: 'help', id: 'move-help' },
			'Type a folder or choose one. A new folder is made. The old addresses no longer work.'),
		h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' }, 'Move'),
			h('button', { type: 'button', onclick: () => dialog.close('') }, 'Cancel')));
	const dialog = openDialog(title, form);

	/** The folder whose folders are shown, and their names. @type {{of: string, names: string[]}} */
	let shown = { of: '', names: [] };
	let run = 0;

	/** Lists the folders of the last whole folder in the field that fit to the text after it. */
	async function list() {
		const typed = input.value.replace(/^\/+/, '');
		const of = parts(typed.slice(0, typed.lastIndexOf('/') + 1)).join('/');
		const mine = ++run;
		const key = `${select.value}/${of}`;
		if (shown.of !== key) {
			const answer = await get(['items', alias.kind, select.value], { folder: of, limit: suggestions })
				.catch(() => ({}));
			if (mine !== run) return;
			shown = { of: key, names: (answer.folders ?? []).map(nameOf) };
		}
		const start = typed.slice(typed.lastIndexOf('/') + 1).toLowerCase();
		const fitting = shown.names.filter((name) => name.toLowerCase().startsWith(start));
		fill(folders, of !== '' && choice('Up', 'up one folder', parts(of).slice(0, -1)),
			fitting.map((name) => choice(name, `folder ${name}`, [...parts(of), name])));
	}

	/**
	 * @param {string} text
	 * @param {string} name
	 * @param {string[]} path
	 */
	const choice = (text, name, path) =>
		h('button', {
			type: 'button',
			class: 'small',
			'aria-label': `${text === 'Up' ? 'Up: ' : ''}${name}`,
			onclick: () => browse(path.join('/')),
		}, icon('folder'), text);

	/** @param {string} path */
	function browse(path) {
		input.value = path && path + '/';
		list();
		input.focus();
	}

	browse(folder);
	input.select();
	return new Promise((resolve) => {
		form.addEventListener('submit', (event) => {
			event.preventDefault();
			dialog.close('move');
		});
		dialog.addEventListener('close', () =>
			resolve(dialog.returnValue === 'move'
				? { alias: select.value, folder: parts(input.value.trim()).join('/') } : null));
	});
}
