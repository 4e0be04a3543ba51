// @ts-check
// Adding, changing and removing one entry of the configuration: a storage, an alias, an account.
import { ApiError, read, send } from './api.js';
import { askConflict } from './conflict.js';
import { fill, h, newId, rich } from './dom.js';
import { entered, textInput, wrapped } from './fields.js';
import { allFields, collect, reveal } from './form.js';
import { icon } from './icons.js';
import { guard } from './state.js';
import { announce, ask, confirm, explained, once, showError } from './ui.js';

/**
 * The field for the name of a new entry.
 * @param {Option} option
 * @param {RegExp} rule
 * @param {string} words
 * @param {string} [value]
 */
export function nameField(option, rule, words, value = '') {
	const control = textInput(option, value);
	return wrapped({ required: true, ...option }, '@name', control, () => {
		const name = entered(control);
		if (name !== undefined && !rule.test(name)) throw new Error(words);
		return name;
	});
}

/**
 * Reads an entry: {body: {value, secrets}, etag}, empty without a name.
 * @param {string} section
 * @param {string} name
 * @param {AbortSignal} [signal]
 */
export async function readEntry(section, name, signal) {
	return name ? read(['config', section, name], {}, signal)
		: { body: { value: {}, secrets: [] }, etag: null };
}

/**
 * The form of an entry. spec: {section, what, name ('' for a new one), current: {value, secrets},
 * etag, build(current, isNew) -> {element, fields(), extra()}, tools (nodes beside the buttons),
 * back (address of the list), agrees(value), saved(answer)}. Returns {element, input(only), isDirty(),
 * complain(problems, intro), fieldOf(path)}.
 * @param {EntrySpec} spec
 */
export function entryForm(spec) {
	let { etag } = spec;
	let dirty = false;
	/** @type {ReturnType<EntrySpec['build']>} */
	let parts;
	const summary = h('div', { class: 'notice bad', role: 'alert', tabindex: '-1', hidden: true });
	const body = h('div');
	const save = h('button', { type: 'submit', class: 'primary' }, spec.name ? 'Save' : `Add ${spec.what}`);
	const form = h('form', {
		novalidate: true,
		'aria-label': spec.what,
		onsubmit: submit,
		oninput: () => {
			dirty = true;
		},
		onchange: () => {
			dirty = true;
		},
	}, summary, body,
		h('div', { class: 'actions form-actions' }, save,
			h('a', { class: 'button', href: spec.back }, 'Cancel'), spec.tools));
	show(spec.current);
	guard(() => dirty && form.isConnected);

	/** @param {Entry} current */
	function show(current) {
		parts = spec.build(current, !spec.name);
		fill(body, parts.element);
		dirty = false;
	}

	/** @param {Event} event */
	function submit(event) {
		event.preventDefault();
		once(save, async () => {
			const typed = check();
			if (typed && (!spec.agrees || await spec.agrees(typed.body.value))) await put(typed);
		});
	}

	/**
	 * Returns the input (of some of the fields), or nothing after showing its problems.
	 * @param {(field: Field) => unknown} [only]
	 */
	function check(only = () => true) {
		summary.hidden = true;
		const { value, secrets, problems } = collect(parts.fields().filter(only));
		if (problems.length > 0) return void complain(problems);
		const { '@name': name = spec.name, ...rest } = value;
		return { name, body: { value: rest, secrets, ...parts.extra?.() } };
	}

	/** @param {string} path */
	const fieldOf = (path) => allFields(parts.fields()).find((each) => each.path === path);
	/**
	 * @param {Problem[]} problems
	 * @param {string} [intro]
	 */
	const complain = (problems, intro = 'This cannot be saved yet') => {
		const fields = allFields(parts.fields());
		showProblems(summary, problems.map((each) => ({ ...each, message: inWords(each, fields) })), intro);
	};

	/** @param {{name: string, body: Input}} typed */
	async function put(typed) {
		try {
			const answer = await send('PUT', ['config', spec.section, typed.name], {
				body: typed.body,
				etag,
				create: !etag,
			});
			dirty = false;
			await spec.saved?.(answer.body);
			location.hash = spec.back;
			announce(`The ${spec.what} “${typed.name}” is saved.`);
		} catch (error) {
			await refused(error, typed);
		}
	}

	/**
	 * @param {any} error
	 * @param {{name: string, body: Input}} typed
	 */
	async function refused(error, typed) {
		if (error instanceof ApiError && error.status === 412 && !etag) {
			return complain([{
				field: fieldOf('@name'),
				message: `The name “${typed.name}” is used by another ${spec.what}.`,
			}], 'It was not saved');
		}
		if (error instanceof ApiError && error.status === 412 && error.body.current)
			return conflict(error, typed);
		if (error instanceof ApiError && (error.status === 404 || error.status === 412)) {
			etag = null; // the next save creates it
			return complain([{
				message:
					`Someone else has removed this ${spec.what}. Save again to create it with your values.`,
			}], 'It was not saved');
		}
		complain([{ field: fieldOf(error.option), message: error.message, error }], 'It was not saved');
	}

	/**
	 * @param {any} error
	 * @param {{name: string, body: Input}} typed
	 */
	async function conflict(error, typed) {
		const choice = await askConflict(spec.what, error.body.current, typed.body,
			(path) => fieldOf(path)?.type);
		if (choice === 'mine') {
			etag = error.etag;
			await put(typed);
		} else if (choice === 'theirs') {
			etag = error.etag;
			show(error.body.current);
			announce('The form shows the saved values.');
		}
	}

	return { element: form, input: check, isDirty: () => dirty, complain, fieldOf };
}

/**
 * The message of a problem, with the labels of options instead of their names, and advice.
 * @param {Problem} problem
 * @param {{path: string, name: string}[]} fields
 */
export function inWords({ message, field }, fields) {
	const labels = new Map(fields.map(({ path, name }) => [path.split('.').at(-1), name]));
	const text = message.replace(/\b[a-z]+(_[a-z]+)+\b/g,
		(word) => labels.has(word) ? `“${labels.get(word)}”` : word);
	return field?.advice ? `${text}. ${field.advice}` : text;
}

/**
 * Shows problems at the top and at their fields; the first of them gets the focus.
 * @param {HTMLElement} summary
 * @param {Problem[]} problems
 * @param {string} intro
 */
function showProblems(summary, problems, intro) {
	const link = (/** @type {Field} */ field, /** @type {string} */ message) =>
		h('a', {
			href: '#',
			onclick: (event) => {
				event.preventDefault();
				reveal(field);
			},
		}, rich(message));
	for (const { field, message } of problems) field?.mark(message);
	summary.hidden = false;
	fill(summary, icon('down'),
		h('div', null, h('h2', null, intro),
			h('ul', null,
				problems.map((problem) =>
					h('li', null, problem.field ? link(problem.field, problem.message)
						: problem.error ? explained(problem.error) : rich(problem.message))
				))));
	if (problems[0].field) reveal(problems[0].field);
	else summary.focus();
}

/**
 * Removes an entry after confirmation, or shows its users. Returns whether it was removed.
 * @param {Removal} entry
 */
async function removeEntry({ section, name, what, warning, users = [] }) {
	if (users.length > 0) {
		await showUsers(name, what, `The ${what} cannot be removed, because it is in use:`, users);
		return false;
	}
	if (!await confirm(`Remove the ${what} “${name}”?`, h('p', null, warning), `Remove ${what}`))
		return false;
	try {
		const { etag } = await read(['config', section, name]);
		await send('DELETE', ['config', section, name], { etag });
		guard(() => false); // unsaved input is irrelevant now
		announce(`The ${what} “${name}” is removed.`);
		return true;
	} catch (error) {
		if (error.status === 409) await showUsers(name, what, error.message, error.body.used_by ?? []);
		else await showError(`The ${what} “${name}” was not removed`, error);
		return false;
	}
}

/**
 * The button for removeEntry; removed is called after the removal.
 * @param {Removal} entry
 * @param {() => void} removed
 */
export const removeButton = (entry, removed) =>
	h('button', {
		type: 'button',
		class: 'quiet-danger',
		'aria-label': `Remove ${entry.name}`,
		onclick: async () => {
			if (await removeEntry(entry)) removed();
		},
	}, 'Remove');

/**
 * @param {string} name
 * @param {string} what
 * @param {string} message
 * @param {(User | string)[]} users
 */
function showUsers(name, what, message, users) {
	return ask(`The ${what} “${name}” is in use`, [
		h('p', null, rich(message)),
		h('ul', { class: 'users' }, users.map((user) => h('li', null, userLink(user)))),
	], [{ text: 'Close', value: '', first: true }]);
}

/** @param {User | string} user */
function userLink(user) {
	const close = (/** @type {any} */ event) => event.target.closest('dialog').close('');
	if (typeof user === 'string') return user;
	if (user.kind === 'resumable') return 'Resumable uploads';
	if (user.alias)
		return h('a', { href: `#/aliases/${user.kind}/${encodeURIComponent(user.alias)}`, onclick: close },
			`${user.kind === 'img' ? 'Image' : 'File'} alias ${user.alias}`);
	const key = user.account ?? user.api_key ?? '';
	return h('a', { href: `#/accounts/${encodeURIComponent(key)}`, onclick: close }, `Account ${key}`);
}

/**
 * A group of fields, with a title if there is one.
 * @param {string} title
 * @param {...Child} content
 */
export function section(title, ...content) {
	if (!title) return h('div', { class: 'card' }, content);
	const id = newId('section');
	return h('section', { class: 'card', 'aria-labelledby': id }, h('h2', { id }, title), content);
}
