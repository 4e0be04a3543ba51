// Shared parts: messages, dialogs, copying, badges.
import { fill, h, newId, rich, visuallyHidden } from './dom.js';
import { ago, isTime, moment } from './format.js';
import { icon } from './icons.js';
import { isBusy, state } from './state.js';

// A part of the page from its start: a live region must exist before its text changes.
const liveRegion = () => document.getElementById('live');
let fading;

/** Announces a result, visibly and to screen readers. */
export function announce(text) {
	const live = liveRegion();
	const host = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
	if (live.parentNode !== host) host.append(live); // screen readers ignore content behind a dialog
	clearTimeout(fading);
	live.textContent = '';
	setTimeout(() => {
		live.textContent = text;
	}, 50);
	fading = setTimeout(() => {
		live.textContent = '';
	}, 7000);
}

/**
 * Opens a dialog and returns it. Its close event reports the end. A required dialog closes only by
 * an action.
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
		if (dialog.contains(liveRegion())) document.body.append(liveRegion());
		dialog.remove();
	});
	document.body.append(dialog);
	dialog.showModal();
	return dialog;
}

/** Closes all dialogs without a choice. */
export function closeDialogs() {
	for (const dialog of [...document.querySelectorAll('dialog[open]')].reverse()) dialog.close('');
}

/** Asks in a dialog; returns the value of the chosen button, '' for none. */
export function ask(title, content, actions, options) {
	return new Promise((resolve) => {
		const dialog = openDialog(title, content, { ...options, actions });
		dialog.addEventListener('close', () => resolve(dialog.returnValue));
	});
}

/** Asks for confirmation of an irreversible action. */
export async function confirm(title, content, action) {
	const answer = await ask(title, content, [
		{ text: 'Cancel', value: '', first: true },
		{ text: action, value: 'yes', look: 'danger' },
	]);
	return answer === 'yes';
}

/** Shows a failure in a dialog. */
export const showError = (title, error) =>
	ask(title, h('p', null, explained(error)), [{ text: 'Close', value: '', first: true }]);

/** A link to the login: in a new tab if input would be lost, else in this one. */
const logInAgain = () =>
	h('a', {
		href: './' + location.hash,
		target: '_blank',
		onclick: (event) => {
			if (state.unsaved() || isBusy()) return;
			event.preventDefault();
			location.reload();
		},
	}, 'Log in again');

/** The message of a failure, with a link to the login if the session has ended. */
export const explained = (error) => [rich(error.message), error.loggedOut && [' ', logInAgain()]];

/** A field with text and a copy button. */
export function copyField(name, text) {
	const id = newId('copy');
	const field = h(text.includes('\n') ? 'textarea' : 'input', {
		id,
		value: text,
		readonly: true,
		spellcheck: 'false',
		rows: text.split('\n').length,
	});
	const button = h('button', {
		type: 'button',
		'aria-label': `Copy: ${name}`,
		onclick: () => copy(field, name),
	}, icon('copy'), 'Copy');
	return h('div', { class: 'copy' }, h('label', { for: id }, name),
		h('div', { class: 'copy-row' }, field, button));
}

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

const states = { up: 'Up', down: 'Down', unknown: 'Unknown' };

/** A state of health as icon and word. */
export function badge(state) {
	const known = states[state] ? state : 'unknown';
	return h('span', { class: 'badge ' + known }, icon(known), states[known]);
}

/** A time as "3 minutes ago", with the exact time as tooltip. */
export function time(value, empty = 'not yet') {
	return isTime(value) ? h('time', { datetime: value, title: moment(value) }, ago(value)) : empty;
}

/** The guarantees of a storage. */
export function guarantees(list) {
	if (!list?.length) return null;
	return h('ul', { class: 'guarantees', role: 'list' },
		list.map(({ holds, text }) =>
			h('li', { class: holds ? 'holds' : '' }, icon(holds ? 'check' : 'minus'),
				visuallyHidden(holds ? 'Guaranteed: ' : 'Not guaranteed: '), h('span', null, rich(text)))
		));
}

/** Collapsed technical detail. */
export function details(text, summary = 'Details', key) {
	if (!text) return null;
	return h('details', { 'data-key': key }, h('summary', null, summary), h('pre', { tabindex: '0' }, text));
}

/** The content of an empty page. */
export function empty(iconName, title, text, action) {
	return h('div', { class: 'empty' }, icon(iconName), h('h2', null, title), h('p', null, rich(text)),
		action);
}

/** The content of a page while it loads. */
export const waiting = () =>
	h('p', { class: 'muted waiting', role: 'status' }, h('span', { class: 'spinner' }), 'Loading …');

/** The content of a page that failed to load. */
export function failed(error, retry) {
	return h('div', { class: 'notice bad', role: 'alert' }, icon('down'),
		h('div', null, h('p', null, explained(error)), retry && !error.loggedOut
			&& h('button', { type: 'button', onclick: retry }, icon('refresh'), 'Try again')));
}

/** Runs work while its button is disabled. It does nothing if the button is disabled already. */
export async function once(button, work) {
	if (button.getAttribute('aria-disabled') === 'true') return;
	button.setAttribute('aria-disabled', 'true');
	try {
		await work();
	} finally {
		button.removeAttribute('aria-disabled');
	}
}

/** Like once; failures are shown in a dialog. */
export const busyWhile = (button, title, work) =>
	once(button, () => work().catch((error) => showError(title, error)));

/** The heading of a page, with its actions. */
export function pageHead(title, ...actions) {
	return h('div', { class: 'page-head' }, h('h1', { tabindex: '-1' }, title),
		h('div', { class: 'actions' }, actions));
}

/** The link from an entry to its list. */
export const listLink = (title) =>
	h('nav', { class: 'crumbs', 'aria-label': 'Breadcrumb' },
		h('a', { href: `#/${title.toLowerCase()}` }, title));

/** A list of rows with a label. */
export const rowList = (label, rows) => h('ul', { class: 'rows', role: 'list', 'aria-label': label }, rows);

/** A list of names and values. */
export function facts(pairs, className = 'facts') {
	return fill(h('dl', { class: className }),
		pairs.filter(([, value]) => value != null && value !== '' && value !== false)
			.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));
}
