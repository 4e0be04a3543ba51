// @ts-check
// State of all pages.

/** The one state: the session, unsaved input and uploads. */
export const state = {
	/** @type {Session} */
	session: { user: '', editor: false, may: [], why_not: '', lasting: true, lasting_note: '' },
	/** Returns the warning about unsaved input on the current page; '' if there is none. */
	unsaved: () => '',
	/**
	 * The upload areas by alias: uploads continue while other pages are shown.
	 * @type {Map<string, any>}
	 */
	uploadAreas: new Map(),
};

/**
 * Whether this user has a right to items.
 * @param {'upload' | 'replace' | 'move' | 'delete' | 'sign' | 'restore' | 'purge'} right
 */
export const may = (right) => state.session.may.includes(right);

/** Whether this user may act on the service: test storages, revoke tokens, end uploads. */
export const mayAct = () => state.session.editor;

/** Whether this user may change the configuration as well. */
export const mayConfigure = () => state.session.editor && !state.session.why_not;

/**
 * Sets the check for unsaved input on the current page, and the warning to show.
 * @param {() => boolean} check
 */
export function guard(check, words = 'Your input will be lost.') {
	state.unsaved = () => (check() ? words : '');
}

/** Whether uploads are in progress, or wait. */
export const isBusy = () => [...state.uploadAreas.values()].some((area) => area.pending());

/**
 * A preference of this browser, or of this tab (sessionStorage); never anything secret.
 * @param {string} name
 * @param {string} [value] is set if it is not undefined
 * @param {'localStorage' | 'sessionStorage'} [storage]
 */
export function preference(name, value, storage = 'localStorage') {
	try {
		if (value !== undefined) window[storage].setItem('media-admin.' + name, value);
		return window[storage].getItem('media-admin.' + name);
	} catch {
		return null; // the browser has no storage
	}
}
