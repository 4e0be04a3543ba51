// @ts-check
// Renames an item, or moves it to another folder of its alias.
import { post } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { folderOf, nameOf, parts } from '../lib/links.js';
import { guard } from '../lib/state.js';
import { explained, once, openDialog } from '../lib/ui.js';
import { condition } from './replace.js';

/**
 * Asks for the new name and folder until the item has them. Returns the new filename; '' if the user
 * cancels. A failure with the status 412 is thrown: the item is another one by now.
 * @param {Alias} alias
 * @param {Item} item
 * @returns {Promise<string>}
 */
export function rename(alias, item) {
	const oldName = nameOf(item.filename);
	const dot = oldName.lastIndexOf('.');
	const oldFolder = folderOf(item.filename);
	/**
	 * @param {string} id
	 * @param {string} value
	 * @param {object} [more]
	 */
	const field = (id, value, more) =>
		h('input', {
			id,
			type: 'text',
			value,
			autocomplete: 'off',
			autocapitalize: 'none',
			spellcheck: 'false',
			'aria-describedby': 'rename-error rename-help',
			...more,
		});
	const name = field('rename-name', oldName, { required: true, autofocus: true });
	const folder = field('rename-folder', oldFolder, { placeholder: 'the top folder' });
	const error = h('p', { class: 'field-error', id: 'rename-error', role: 'alert' });
	const submit = h('button', { type: 'submit', class: 'primary' }, 'Rename');
	const form = h('form', { class: 'fields' },
		h('div', { class: 'field' }, h('label', { for: 'rename-name' }, 'Name'), name, error),
		h('div', { class: 'field' }, h('label', { for: 'rename-folder' }, 'Folder'), folder),
		h('p', { class: 'help', id: 'rename-help' },
			'The old address no longer works: change it wherever it is used.'),
		h('div', { class: 'actions' }, submit,
			h('button', { type: 'button', onclick: () => dialog.close('') }, 'Cancel')));
	const dialog = openDialog(`Rename ${oldName}`, form);
	name.focus();
	name.setSelectionRange(0, dot > 0 ? dot : oldName.length);

	/** @param {any} failure */
	function refused(failure) {
		fill(error, icon('down'), h('span', null, explained(failure)));
		name.setAttribute('aria-invalid', 'true');
		name.focus();
	}

	const changed = () => name.value !== oldName || folder.value !== oldFolder;

	async function send() {
		if (!changed()) return '';
		// A field that is not changed may begin or end with spaces.
		const last = name.value === oldName ? oldName : name.value.trim();
		if (!last) throw new Error('Enter a name.');
		const path = folder.value === oldFolder ? oldFolder : folder.value.trim();
		const to = [...parts(path), last].join('/');
		if (to === item.filename) return '';
		const { result } = await post(['items', alias.kind, alias.name, ...parts(item.filename)], [['to', to],
			['overwrite', 'no']], condition(alias, item));
		return result[0].filename;
	}

	return new Promise((resolve, reject) => {
		/** @type {Promise<string>} */
		let sent = Promise.resolve('');
		form.addEventListener('submit', (event) => {
			event.preventDefault();
			once(submit, async () => {
				sent = send();
				try {
					await sent;
					dialog.close('');
				} catch (failure) {
					if (failure.status === 412) dialog.close('');
					else if (dialog.open) {
						sent = Promise.resolve('');
						refused(failure);
					}
				}
			});
		});
		guard(changed);
		dialog.addEventListener('close', () => {
			guard(() => false);
			sent.then(resolve, reject); // the item may be renamed although the dialog was closed
		});
	});
}
