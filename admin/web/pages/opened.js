// @ts-check
// The item of a list that is open in a dialog.
import { closeDialogs } from '../lib/ui.js';

/**
 * The open item is part of the address: it can be linked, and Back closes it. address returns that of
 * an item by its key, and without one that of the list. open returns the dialog of an item, which
 * calls follow with the key of another one that it shows.
 * @param {Listing} list
 * @param {{address: (key?: string) => string,
 *   open: (key: string, follow: (key: string) => void) => HTMLDialogElement}} of
 * @param {AbortSignal} signal
 */
export function opened(list, { address, open }, signal) {
	/** @type {HTMLDialogElement | null} */
	let dialog = null;
	let current = '';
	let openedHere = false;
	/** @param {string} key */
	function follow(key) {
		current = key;
		history.replaceState(history.state, '', address(key)); // without an event
	}
	/**
	 * @param {string} wanted
	 * @param {boolean} [clicked]
	 */
	function show(wanted, clicked = false) {
		if (wanted === current) return;
		if (current === '') openedHere = clicked;
		current = wanted;
		dialog = null;
		closeDialogs();
		if (wanted === '') return;
		const mine = dialog = open(wanted, follow);
		mine.addEventListener('close', () => {
			if (signal.aborted || dialog !== mine) return; // another page or item is shown already
			list.focus(current);
			dialog = null;
			current = '';
			if (openedHere) history.back();
			else location.replace(address());
		});
	}
	return { show };
}
