// @ts-check
// The transfer of one file to the server.
import { get, isLogin, LoggedOutError, newKey, parse, route } from './api.js';
import { Interruption, pause, sendRepeatedly } from './exchange.js';
import { uploadResumable } from './tus.js';

const resumableFrom = 8 << 20; // bytes; smaller files are sent again quickly

/** A failed transfer, with its message. */
export class TransferError extends Error {
	/**
	 * @param {string} message
	 * @param {boolean} [unreachable] whether other files would fail too
	 */
	constructor(message, unreachable = false) {
		super(message);
		this.unreachable = unreachable;
	}
}

/**
 * What makes it safe to send a file again: an answer that was lost is repeated, and the file stored
 * once. A file that was refused gets another one.
 * @returns {Attempt}
 */
export const newAttempt = () => ({
	key: newKey(),
	address: '',
});

/**
 * Sends a file, and repeats that after cuts. Returns its stored filename. The error is a
 * TransferError or a LoggedOutError.
 * @param {Alias} alias
 * @param {File} file
 * @param {string} subFolder
 * @param {Attempt} attempt is renewed by a refusal
 * @param {(sent: number | null, interruption?: string) => void} progress is called with null and the reason
 *   when it is interrupted
 * @param {AbortSignal} signal
 */
export async function transfer(alias, file, subFolder, attempt, progress, signal) {
	/** @type {import('./exchange.js').Wait} */
	const wait = (milliseconds, aborted, reason) => {
		progress(null, reason.message);
		return pause(milliseconds, aborted);
	};
	let answer;
	try {
		answer = file.size >= resumableFrom
			? await uploadResumable(route(['upload', alias.kind, 'resumable']), file, {
				filename: file.name,
				alias: alias.name,
				sub_folder: subFolder,
			}, progress, signal, attempt, wait)
			: null;
		answer ??= await sendForm(alias, file, subFolder, attempt.key, progress, signal, wait);
	} catch (error) {
		if (signal.aborted) throw new TransferError('Cancelled.');
		throw error instanceof Interruption && error.isAnswer ? new TransferError(error.message)
			: await cause(file);
	}
	if (isLogin(answer.status, answer.type)) throw new LoggedOutError(answer.status);
	const { success, result = [], errors, error } = parse(answer.text) ?? {};
	if (success && result[0]) return /** @type {string} */ (result[0].filename);
	if (answer.status < 500) Object.assign(attempt, newAttempt());
	const messages = errors?.map((/** @type {Error} */ { message }) => message).join(' ');
	throw new TransferError(messages || error || `The server answered ${answer.status}.`);
}

/**
 * @param {Alias} alias
 * @param {File} file
 * @param {string} subFolder
 * @param {string} key
 * @param {(sent: number) => void} progress
 * @param {AbortSignal} signal
 * @param {import('./exchange.js').Wait} wait
 */
function sendForm(alias, file, subFolder, key, progress, signal, wait) {
	const body = new FormData();
	body.append('files[]', file, file.name); // else one of a chosen folder has its path as the name
	const address = route(['upload', alias.kind], { alias: alias.name, sub_folder: subFolder });
	return sendRepeatedly('POST', address, signal, { 'Idempotency-Key': key }, body, progress, wait);
}

/**
 * The reason why the connection broke, also by a redirect to the login of another host.
 * @param {File} file
 */
async function cause(file) {
	try {
		await file.slice(0, 1).arrayBuffer();
	} catch {
		return new TransferError(
			'The file cannot be read: it was moved, changed or removed. Choose it again.',
		);
	}
	const error = await get(['session']).then(() => null, (failure) => failure);
	if (error?.loggedOut) return error;
	return new TransferError(
		'The connection broke. “Again” continues; a file that has arrived is not stored twice.',
		error !== null && !error.status,
	);
}
