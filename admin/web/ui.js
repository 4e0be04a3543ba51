// Parts that several pages use: messages, dialogs, copying, small marks.
import { h, fill, rich, unseen, newId } from './dom.js';
import { icon } from './icons.js';
import { ago, isTime, moment } from './format.js';
import { isBusy, wouldLose } from './state.js';

const live = h('div', { class: 'toast', role: 'status', 'aria-live': 'polite' });
document.body.append(live); // only what is there before it speaks is heard
let fading;

/** Says the result of something, to be seen and heard. */
export function announce(text) {
	const host = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
	if (live.parentNode !== host) host.append(live); // what is behind a dialog is not heard
	clearTimeout(fading);
	live.textContent = '';
	setTimeout(() => { live.textContent = text; }, 50);
	fading = setTimeout(() => { live.textContent = ''; }, 7000);
}

/** Shows a dialog; gives it back when it is on the screen. Its close event tells the end. One that is kept ends only by an action. */
export function openDialog(title, content, { actions = [], wide = false, kept = false } = {}) {
	const id = newId('dialog');
	const dialog = h('dialog', { 'aria-labelledby': id, class: wide ? 'wide' : '' },
		h('div', { class: 'dialog-head' },
			h('h2', { id }, title),
			!kept && h('button', { type: 'button', class: 'plain', 'aria-label': 'Close', onclick: () => dialog.close('') }, icon('cross'))),
		h('div', { class: 'dialog-body' }, content),
		actions.length > 0 && h('div', { class: 'actions' }, actions.map(({ text, value, look, first }) =>
			h('button', { type: 'button', class: look, autofocus: first, onclick: () => dialog.close(value) }, text))));
	if (kept) dialog.addEventListener('cancel', (event) => event.preventDefault());
	dialog.addEventListener('close', () => {
		if (dialog.contains(live)) document.body.append(live);
		dialog.remove();
	});
	document.body.append(dialog);
	dialog.showModal();
	return dialog;
}

/** Closes all dialogs as if nothing was chosen. */
export function closeDialogs() {
	for (const dialog of [...document.querySelectorAll('dialog[open]')].reverse()) dialog.close('');
}

/** Asks; gives the value of the button that was chosen, '' for none. */
export function ask(title, content, actions, options) {
	return new Promise((resolve) => {
		const dialog = openDialog(title, content, { ...options, actions });
		dialog.addEventListener('close', () => resolve(dialog.returnValue));
	});
}

/** Asks whether to do what cannot be undone. */
export async function confirm(title, content, action) {
	const answer = await ask(title, content, [
		{ text: 'Cancel', value: '', first: true },
		{ text: action, value: 'yes', look: 'danger' },
	]);
	return answer === 'yes';
}

/** Shows a failure that has no place on the page. */
export const tellError = (title, error) => ask(title, h('p', null, explained(error)), [{ text: 'Close', value: '', first: true }]);

/** A link to the login: in a new tab where something would be lost, else in place of the page. */
export const logInAgain = () => h('a', { href: './' + location.hash, target: '_blank', onclick: (event) => {
	if (wouldLose() || isBusy()) return;
	event.preventDefault();
	location.reload();
} }, 'Log in again');

/** The message of a failure, with a way on where there is one. */
export const explained = (error) => [rich(error.message), error.loggedOut && [' ', logInAgain()]];

/** A field with text to copy and its button. */
export function copyField(name, text) {
	const id = newId('copy');
	const field = h(text.includes('\n') ? 'textarea' : 'input', { id, value: text, readonly: true, spellcheck: 'false', rows: text.split('\n').length });
	const button = h('button', { type: 'button', 'aria-label': `Copy: ${name}`, onclick: () => copy(field, name) }, icon('copy'), 'Copy');
	return h('div', { class: 'copy' }, h('label', { for: id }, name), h('div', { class: 'copy-row' }, field, button));
}

async function copy(field, name) {
	field.select();
	try {
		if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
		else if (!document.execCommand('copy')) throw new Error('refused'); // a page without https has no clipboard
		announce(`${name}: copied.`);
	} catch {
		announce('The browser did not allow to copy: the text is selected, copy it by hand.');
	}
}

const states = { up: 'Up', down: 'Down', unknown: 'Not known yet' };

/** The health of something as icon and word. */
export function badge(state) {
	const known = states[state] ? state : 'unknown';
	return h('span', { class: 'badge ' + known }, icon(known), states[known]);
}

/** A moment as "3 minutes ago"; the exact one when pointed at. */
export function time(value, empty = 'not yet') {
	return isTime(value) ? h('time', { datetime: value, title: moment(value) }, ago(value)) : empty;
}

/** What a storage guarantees. */
export function guarantees(list) {
	if (!list?.length) return null;
	return h('ul', { class: 'guarantees', role: 'list' }, list.map(({ holds, text }) =>
		h('li', { class: holds ? 'holds' : '' }, icon(holds ? 'check' : 'minus'), unseen(holds ? 'Guaranteed: ' : 'Not guaranteed: '), h('span', null, rich(text)))));
}

/** Technical detail that is looked at when needed. */
export function details(text, summary = 'Details', key) {
	if (!text) return null;
	return h('details', { 'data-key': key }, h('summary', null, summary), h('pre', { tabindex: '0' }, text));
}

/** What a page shows that has nothing to show. */
export function empty(iconName, title, text, action) {
	return h('div', { class: 'empty' }, icon(iconName), h('h2', null, title), h('p', null, rich(text)), action);
}

/** What is shown while something is loaded. */
export const waiting = () => h('p', { class: 'muted waiting', role: 'status' }, h('span', { class: 'spinner' }), 'Loading …');

/** What is shown where something could not be loaded. */
export function failed(error, again) {
	return h('div', { class: 'notice bad', role: 'alert' }, icon('down'),
		h('div', null, h('p', null, explained(error)), again && !error.loggedOut && h('button', { type: 'button', onclick: again }, icon('refresh'), 'Try again')));
}

/** Does something while a button waits; failures are shown in a dialog. */
export async function busyWhile(button, title, work) {
	if (button.getAttribute('aria-disabled') === 'true') return;
	button.setAttribute('aria-disabled', 'true');
	try {
		await work();
	} catch (error) {
		await tellError(title, error);
	} finally {
		button.removeAttribute('aria-disabled');
	}
}

/** The head of a page. */
export function pageHead(title, ...actions) {
	return h('div', { class: 'page-head' }, h('h1', { tabindex: '-1' }, title), h('div', { class: 'actions' }, actions));
}

/** Names and values. */
export function facts(pairs, className = 'facts') {
	return fill(h('dl', { class: className }), pairs.filter(([, value]) => value != null && value !== '' && value !== false)
		.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));
}
