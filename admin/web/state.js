// What all pages share: who is logged in, and whether something typed would be lost.

let session = { user: '', editor: false, why_not: '', lasting: true, lasting_note: '' };

export const setSession = (answer) => { session = answer; };

/** Whether this user may change anything: upload, delete items, test storages, end tokens. */
export const mayAct = () => session.editor;

/** Whether the configuration can be changed as well. */
export const mayConfigure = () => session.editor && !session.why_not;

let unsaved = () => '';

/** Says how to find out whether leaving the page that is shown loses something, and in what words to ask. */
export const guard = (check, words = 'What you have typed is lost then.') => { unsaved = () => (check() ? words : ''); };

/** What leaving would lose, in words; '' for nothing. */
export const wouldLose = () => unsaved();

const busy = new Set();

/** Marks an upload as under way until the returned function is called. */
export function underWay() {
	const token = {};
	busy.add(token);
	return () => busy.delete(token);
}

export const isBusy = () => busy.size > 0;

/** A preference of this browser; never anything secret. */
export function preference(name, value) {
	try {
		if (value !== undefined) localStorage.setItem('media-admin.' + name, value);
		return localStorage.getItem('media-admin.' + name);
	} catch {
		return null; // storage is turned off
	}
}
