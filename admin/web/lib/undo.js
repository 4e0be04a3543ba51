// @ts-check
// Messages with a button that undoes what they report, for ten seconds.
import { byId, h } from './dom.js';
import { announce, leave, messageButton } from './ui.js';

const shownFor = 10_000; // in milliseconds
const tick = 250;

/** The undoing of what is shown, the newest one last. @type {(() => void)[]} */
const offers = [];

/**
 * Announces a result with a button that undoes it, by Ctrl+Z too. It stays for ten seconds, and for as
 * long as it has the focus or the mouse, or a dialog is in front of it.
 * @param {string} text
 * @param {() => void} act
 */
export function offerUndo(text, act) {
	const place = byId('offers');
	const shown = h('div', { class: 'toast' }, h('span', null, text),
		messageButton('Undo', use, end, { 'aria-label': `Undo: ${text}`, 'aria-keyshortcuts': 'Control+Z' }));
	let left = shownFor;
	const timer = setInterval(() => {
		const isHeld = shown.matches(':hover, :focus-within') || document.querySelector('dialog[open]');
		if (!isHeld) left -= tick;
		if (left <= 0) end();
	}, tick);
	function end() {
		clearInterval(timer);
		if (offers.includes(use)) offers.splice(offers.indexOf(use), 1);
		leave(shown, () => shown.remove());
		place.hidden = offers.length === 0;
	}
	function use() {
		end();
		act();
	}
	if (offers.length === 0) document.addEventListener('keydown', onkeydown);
	offers.push(use);
	place.hidden = false;
	place.append(shown);
	announce(''); // the message before may say the opposite
	announce(`${text} Undo by Control Z.`, { visible: false });
}

/** @param {KeyboardEvent} event */
function onkeydown(event) {
	const newest = offers.at(-1);
	if (!newest) {
		document.removeEventListener('keydown', onkeydown);
		return;
	}
	const target = /** @type {HTMLElement} */ (event.target);
	const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === 'z';
	if (!isUndo || document.querySelector('dialog[open]')) return;
	if (target.closest('select, textarea, input:not([type="checkbox"])')) return;
	event.preventDefault();
	newest();
}
