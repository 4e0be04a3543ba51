// @ts-check
// Folders: a new one, and the deletion of one with all that is in it.
import { post } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { folderName, plural } from '../lib/format.js';
import { itemsHash } from '../lib/links.js';
import { showResult, withProgress } from '../lib/progress.js';
import { explained, openDialog } from '../lib/ui.js';
import { backFor, toldOfFolder } from './restore.js';

/**
 * A dialog with one text field; returns the text, '' if the user cancels.
 * @param {string} title
 * @param {string} label
 * @param {{help: Child, action: string, look: string, hint?: (text: string) => string,
 *   check: (text: string) => string}} options hint is shown while the user types; check returns
 *   what is wrong
 * @returns {Promise<string>}
 */
function askText(title, label, { help, action, look, hint = () => '', check }) {
	const input = h('input', {
		id: 'asked',
		type: 'text',
		autocomplete: 'off',
		autocapitalize: 'none',
		spellcheck: 'false',
		'aria-describedby': 'asked-note',
		oninput: () => {
			note.textContent = hint(input.value);
			note.className = 'help';
			input.removeAttribute('aria-invalid');
		},
	});
	const note = h('p', { class: 'help', id: 'asked-note', role: 'status' });
	const form = h('form', { class: 'move' }, help,
		h('div', { class: 'tool' }, h('label', { for: 'asked' }, label), input), note,
		h('div', { class: 'actions' }, h('button', { type: 'submit', class: look }, action),
			h('button', { type: 'button', onclick: () => dialog.close('') }, 'Cancel')));
	const dialog = openDialog(title, form);
	input.focus();
	return new Promise((resolve) => {
		form.addEventListener('submit', (event) => {
			event.preventDefault();
			const problem = check(input.value);
			if (!problem) dialog.close(input.value);
			else {
				note.textContent = problem;
				note.className = 'trouble';
				input.setAttribute('aria-invalid', 'true');
				input.focus();
			}
		});
		dialog.addEventListener('close', () => resolve(dialog.returnValue));
	});
}

/**
 * Asks for the name of a new folder and opens it. It exists from its first item on.
 * @param {Scope} scope
 */
export async function newFolder({ alias, folder }) {
	/** @param {string} text */
	const nameOf = (text) => text.trim().split('/').map((part) => folderName(part, alias.sanitize)).join('/');
	const text = await askText('New folder', 'Name', {
		help: h('p', null, 'The folder appears with its first item: upload or move one into it.'),
		action: 'Open',
		look: 'primary',
		hint: (
			typed,
		) => (typed.trim() && nameOf(typed) !== typed.trim() ? `It is named ${nameOf(typed)}.` : ''),
		check: (typed) => (nameOf(typed).split('/').every((part) => part && !/^\.+$/.test(part)) ? ''
			: 'Enter a name.'),
	});
	if (text)
		location.hash = itemsHash(alias.kind, alias.name, [folder, nameOf(text)].filter(Boolean).join('/'));
}

/**
 * Deletes a folder with all items in it and below it, after its name was typed.
 * @param {Scope} scope
 * @param {string} name
 * @param {Listing} list
 */
export async function deleteFolder({ alias, folder }, name, list) {
	const path = folder ? `${folder}/${name}` : name;
	const text = await askText(`Delete the folder “${name}”?`, 'Name of the folder', {
		help: h('p', null,
			'All items in it and in the folders below it are removed, and their addresses no longer',
			' work. ', backFor(alias, 2), ' Type the name of the folder to confirm.'),
		action: 'Delete folder',
		look: 'danger',
		check: (typed) => (typed === name ? '' : `Type ${name} to delete it.`),
	});
	if (!text) return;
	let left = true;
	let began = ''; // the first of the requests
	const { done, error, stopped } = await withProgress(`Deleting ${name}`, 0, async (progress) => {
		while (left && !progress.stopped()) {
			const { deleted = 0, more = false, ...answer } = await post(['items', alias.kind, alias.name], [[
				'action',
				'delete',
			], ['folder', path]]);
			began ||= answer.began;
			progress.done(deleted);
			left = more;
			if (more && deleted === 0) throw new Error('Some items could not be deleted. Try again later.');
		}
	});
	if (!left && !error) {
		list.removeFolder(name);
		toldOfFolder(alias, `The folder ${name} is deleted, with ${plural(done, 'item')}.`, { path, began });
	} else {
		await showResult(`The folder ${name} is not deleted`,
			h('p', null, `${plural(done, 'item')} deleted.`, stopped && ' You have stopped it.'),
			error && h('p', { class: 'trouble' }, explained(error)));
		list.load();
		if (done > 0)
			toldOfFolder(alias, `${plural(done, 'item')} of the folder ${name} deleted.`, { path, began });
	}
}
