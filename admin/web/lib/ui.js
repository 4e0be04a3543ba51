// @ts-check
// Shared parts: messages, dialogs, copying, badges.
import { byId, fill, h, newId, rich, visuallyHidden } from './dom.js';
import { ago, isTime, label, moment, text } from './format.js';
import { icon } from './icons.js';
import { isBusy, state } from './state.js';

/** Whether there is more room than on a phone, where some details start closed. */
export const wide = () => matchMedia('(min-width: 52rem)');

// Parts of the page from its start: a live region must exist before its text changes. There are two, so
// that a message for screen readers does not replace one that is shown.
// The first one is in the place of all messages that are shown.
const liveRegions = () => [byId('seen'), byId('heard')];
const places = () => [byId('toasts'), byId('heard')];
/** @type {Map<Element, ReturnType<typeof setTimeout>>} */
const fading = new Map();
/** Where the focus was before it came to a message. @type {HTMLElement | null} */
let before = null;

/**
 * A button in a message. Escape calls end, which removes the message.
 * @param {string} text
 * @param {() => void} act
 * @param {() => void} end
 * @param {Attributes} [attributes]
 */
export const messageButton = (text, act, end, attributes) =>
	h('button', {
		type: 'button',
		class: 'small',
		onclick: act,
		onfocus: ({ relatedTarget }) => {
			if (relatedTarget && !byId('toasts').contains(relatedTarget)) before = relatedTarget;
		},
		onkeydown: (event) => {
			if (event.key !== 'Escape') return;
			event.stopPropagation(); // it clears no selection
			end();
		},
		...attributes,
	}, text);

/**
 * Removes a message, and returns the focus from there to where it was before.
 * @param {Element} message
 * @param {() => void} remove
 */
export function leave(message, remove) {
	const hadFocus = message.contains(document.activeElement);
	remove();
	if (hadFocus) (before?.isConnected ? before : byId('main')).focus();
}

/**
 * Announces a result to screen readers; visibly too, unless the page shows it. With an action, it stays
 * for longer and has a button.
 * @param {string} text
 * @param {{visible?: boolean, action?: {text: string, act: () => void}}} [options]
 */
export function announce(text, { visible = true, action } = {}) {
	const index = visible ? 0 : 1;
	const [live, place] = [liveRegions()[index], places()[index]];
	const host = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
	if (place.parentNode !== host) host.append(place); // screen readers ignore content behind a dialog
	clearTimeout(fading.get(live));
	const end = () => leave(live, () => live.replaceChildren());
	const use = () => {
		end();
		action?.act();
	};
	end();
	setTimeout(() => {
		fill(live, text, action && messageButton(action.text, use, end));
	}, 50);
	fading.set(live, setTimeout(end, action ? 20000 : 7000));
}

/**
 * Opens a dialog and returns it. Its close event reports the end. A required dialog closes only by
 * an action.
 * @param {string} title
 * @param {Child} content
 * @param {DialogOptions} [options]
 */
export function openDialog(title, content, { actions = [], wide = false, required = false } = {}) {
	const id = newId('dialog');
	const dialog = h('dialog', { 'aria-labelledby': id, class: wide ? 'wide' : '' },
		h('div', { class: 'dialog-head' }, h('h2', { id }, title), !required
			&& h('button', {
				type: 'button',
				class: 'plain',
				'aria-label': 'Close',
				onclick: () => dialog.close(''),
			}, icon('cross'))), h('div', { class: 'dialog-body' }, content), actions.length > 0
		&& h('div', { class: 'actions' }, actions.map(({ text, value, look, first }) =>
			h('button', {
				type: 'button',
				class: look,
				autofocus: first,
				onclick: () => dialog.close(value),
			}, text)
		)));
	if (required) dialog.addEventListener('cancel', (event) => event.preventDefault());
	dialog.addEventListener('close', () => {
		document.body.append(...places().filter((place) => dialog.contains(place)));
		dialog.remove();
	});
	document.body.append(dialog);
	dialog.showModal();
	return dialog;
}

/** Closes all dialogs without a choice. */
export function closeDialogs() {
	for (const dialog of [...document.querySelectorAll('dialog')].reverse()) dialog.close('');
}

/**
 * Asks in a dialog; returns the value of the chosen button, '' for none.
 * @param {string} title
 * @param {Child} content
 * @param {Action[]} actions
 * @param {DialogOptions} [options]
 * @returns {Promise<string>}
 */
export function ask(title, content, actions, options) {
	return new Promise((resolve) => {
		const dialog = openDialog(title, content, { ...options, actions });
		dialog.addEventListener('close', () => resolve(dialog.returnValue));
	});
}

/**
 * Asks for confirmation of an irreversible action.
 * @param {string} title
 * @param {Child} content
 * @param {string} action
 */
export async function confirm(title, content, action) {
	const answer = await ask(title, content, [
		{ text: 'Cancel', value: '', first: true },
		{ text: action, value: 'yes', look: 'danger' },
	]);
	return answer === 'yes';
}

/**
 * Shows a failure in a dialog.
 * @param {string} title
 * @param {any} error
 */
export const showError = (title, error) =>
	ask(title, h('p', null, explained(error)), [{ text: 'Close', value: '', first: true }]);

/** A link to the login: in a new tab if input or a dialog would be lost, else in this one. */
const logInAgain = () =>
	h('a', {
		href: './' + location.hash,
		target: '_blank',
		onclick: (event) => {
			if (state.unsaved() || isBusy() || event.currentTarget.closest('dialog')) return;
			event.preventDefault();
			location.reload();
		},
	}, 'Log in again');

/**
 * The message of a failure, with a link to the login if the session has ended.
 * @param {any} error
 */
export const explained = (error) => [rich(error.message), error.loggedOut && [' ', logInAgain()]];

/**
 * A field with text and a copy button.
 * @param {string} name
 * @param {string} text
 * @param {Child} [after] the button
 */
export function copyField(name, text, after) {
	const id = newId('copy');
	const field = h(text.includes('\n') ? 'textarea' : 'input', {
		id,
		value: text,
		readonly: true,
		spellcheck: 'false',
		rows: Math.min(text.split('\n').length, 12),
	});
	const button = h('button', {
		type: 'button',
		'aria-label': `Copy: ${name}`,
		onclick: () => copy(field, name),
	}, icon('copy'), 'Copy');
	return h('div', { class: 'copy' }, h('label', { for: id }, name),
		h('div', { class: 'copy-row' }, field, button, after));
}

/**
 * @param {HTMLInputElement | HTMLTextAreaElement} field
 * @param {string} name
 */
async function copy(field, name) {
	field.select();
	try {
		if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
		else if (!document.execCommand('copy')) throw new Error('refused'); // no clipboard API over http
		announce(`${name}: copied.`);
	} catch {
		announce('The browser did not allow copying. The text is selected: copy it manually.');
	}
}

/** @type {Record<string, string>} */
const states = { up: 'Up', down: 'Down', unknown: 'Unknown' };

/**
 * A state of health as icon and word.
 * @param {string} [state]
 */
export function badge(state = '') {
	const known = states[state] ? state : 'unknown';
	return h('span', { class: 'badge ' + known }, icon(known), states[known]);
}

/**
 * A time as "3 minutes ago", with the exact time as tooltip.
 * @param {string | undefined} value
 * @param {string} [empty]
 */
export function time(value, empty = 'not yet') {
	return isTime(value) ? h('time', { datetime: value, title: moment(value) }, ago(value)) : empty;
}

/**
 * The guarantees of a storage.
 * @param {Guarantee[]} [list]
 */
export function guarantees(list) {
	if (!list?.length) return null;
	return h('ul', { class: 'guarantees', role: 'list' },
		list.map(({ holds, text }) =>
			h('li', { class: holds ? 'holds' : '' }, icon(holds ? 'check' : 'minus'),
				visuallyHidden(holds ? 'Guaranteed: ' : 'Not guaranteed: '), h('span', null, rich(text)))
		));
}

/**
 * Collapsed technical detail.
 * @param {string | undefined} text
 * @param {string} [summary]
 * @param {string} [key]
 */
export function details(text, summary = 'Details', key) {
	if (!text) return null;
	return h('details', { 'data-key': key }, h('summary', null, summary), h('pre', { tabindex: '0' }, text));
}

/**
 * The content of an empty page.
 * @param {string} iconName
 * @param {string} title
 * @param {string} text
 * @param {Child} [action]
 */
export function empty(iconName, title, text, action) {
	return h('div', { class: 'empty' }, icon(iconName), h('h2', null, title), h('p', null, rich(text)),
		action);
}

/** The content of a page while it loads. */
export const waiting = () =>
	h('p', { class: 'muted waiting', role: 'status' }, h('span', { class: 'spinner' }), 'Loading …');

/**
 * The content of a page that failed to load.
 * @param {any} error
 * @param {() => void} [retry]
 */
export function failed(error, retry) {
	return h('div', { class: 'notice bad', role: 'alert' }, icon('down'),
		h('div', null, h('p', null, explained(error)), retry && !error.loggedOut
			&& h('button', { type: 'button', onclick: retry }, icon('refresh'), 'Try again')));
}

/**
 * Runs work while its button is disabled. It does nothing if the button is disabled already.
 * @param {HTMLElement} button
 * @param {() => any} work
 */
export async function once(button, work) {
	if (button.getAttribute('aria-disabled') === 'true') return;
	button.setAttribute('aria-disabled', 'true');
	try {
		await work();
	} finally {
		button.removeAttribute('aria-disabled');
	}
}

/**
 * Like once; failures are shown in a dialog.
 * @param {HTMLElement} button
 * @param {string} title
 * @param {() => Promise<any>} work
 */
export const busyWhile = (button, title, work) =>
	once(button, () => work().catch((error) => showError(title, error)));

/**
 * The heading of a page, with its actions.
 * @param {string} title
 * @param {...Child} actions
 */
export function pageHead(title, ...actions) {
	return h('div', { class: 'page-head' }, h('h1', { tabindex: '-1' }, title),
		h('div', { class: 'actions' }, actions));
}

/**
 * The link from an entry to its list.
 * @param {string} title
 */
export const listLink = (title) =>
	h('nav', { class: 'crumbs', 'aria-label': 'Breadcrumb' },
		h('a', { href: `#/${title.toLowerCase()}` }, title));

/**
 * A list of rows with a label.
 * @param {string} label
 * @param {Child} rows
 */
export const rowList = (label, rows) => h('ul', { class: 'rows', role: 'list', 'aria-label': label }, rows);

/**
 * The options of a driver or an alias for facts.
 * @param {Record<string, any>} [options]
 * @param {string[]} [shown] the options that are shown elsewhere
 */
export function settings(options = {}, shown = []) {
	const rest = Object.entries(options).filter(([name]) => !shown.includes(name));
	return Object.fromEntries(rest.map(([name, value]) => [label(name), text(value)]));
}

/**
 * A list of names and values.
 * @param {Record<string, Child>} values
 * @param {string} [className]
 */
export function facts(values, className = 'facts') {
	return fill(h('dl', { class: className }),
		Object.entries(values).filter(([, value]) => value != null && value !== '' && value !== false)
			.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));
}
