// State of all pages: the session, unsaved input and uploads in progress.

let session = { user: '', editor: false, why_not: '', lasting: true, lasting_note: '' };

export const setSession = (answer) => { session = answer; };

/** Whether this user may make changes: upload, delete items, test storages, revoke tokens. */
export const mayAct = () => session.editor;

/** Whether this user may change the configuration as well. */
export const mayConfigure = () => session.editor && !session.why_not;

let unsaved = () => '';

/** Sets the check for unsaved input on the current page, and the warning to show. */
export const guard = (check, words = 'Your input will be lost.') => { unsaved = () => (check() ? words : ''); };

/** The warning about unsaved input; '' if there is none. */
export const unsavedWarning = () => unsaved();

const busy = new Set();

/** Marks an upload as in progress until the returned function is called. */
export function trackUpload() {
	const token = {};
	busy.add(token);
	return () => busy.delete(token);
}

export const isBusy = () => busy.size > 0;

/** A preference of this browser, or of this tab (sessionStorage); never anything secret. */
export function preference(name, value, storage = 'localStorage') {
	try {
		if (value !== undefined) window[storage].setItem('media-admin.' + name, value);
		return window[storage].getItem('media-admin.' + name);
	} catch {
		return null; // the browser has no storage
	}
}
