// @ts-check
// A client of the protocol tus 1.0.0 for resumable uploads.
import { exchange, interruptedBy, repeat } from './exchange.js';

const attempts = 9; // without progress

const temporary = [408, 409, 423, 429, 500, 502, 503, 504];

/**
 * The header Upload-Metadata: names, and values in Base64. Empty values are omitted.
 * @param {Record<string, string>} values
 */
export const metadataOf = (values) =>
	Object.entries(values).filter(([, value]) => value !== '').map(([name, value]) =>
		`${name} ${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}`
	).join(',');

/** @param {Answer} answer */
function mustLast(answer) {
	if (temporary.includes(answer.status)) throw interruptedBy(answer);
	return answer;
}

/**
 * Uploads a file to an endpoint, and continues after cuts. Returns the last answer: that of the
 * upload as a form, or a refusal; null if the server has no resumable uploads. It rejects if the
 * connection stays broken, or if signal is aborted. at.address is that of the upload: with it, the
 * same file is continued later.
 * @param {string} endpoint
 * @param {Blob} file
 * @param {Record<string, string>} metadata
 * @param {(sent: number) => void} progress
 * @param {AbortSignal} signal
 * @param {{address: string}} [at]
 * @param {import('./exchange.js').Wait} [wait]
 * @returns {Promise<Answer | null>}
 */
export async function uploadResumable(
	endpoint,
	file,
	metadata,
	progress,
	signal,
	at = { address: '' },
	wait = undefined,
) {
	/** @type {typeof exchange} */
	const ask = (method, address, aborted, headers, ...rest) =>
		exchange(method, address, aborted, { 'Tus-Resumable': '1.0.0', ...headers }, ...rest);
	let offset = 0;
	try {
		return await repeat(async (progressed) => {
			if (at.address === '') {
				const created = mustLast(await ask('POST', endpoint, signal, {
					'Upload-Length': String(file.size),
					'Upload-Metadata': metadataOf(metadata),
				}));
				if (created.status === 404) return null;
				if (created.status !== 201) return created;
				at.address = created.header('Location');
			} else {
				const state = mustLast(await ask('HEAD', at.address, signal));
				if (state.status !== 200) return ask('GET', at.address, signal); // it says why
				const stored = Number(state.header('Upload-Offset'));
				if (stored > offset) progressed();
				offset = stored;
			}
			progress(offset);
			if (offset < file.size) {
				const sent = mustLast(await ask('PATCH', at.address, signal, {
					'Content-Type': 'application/offset+octet-stream',
					'Upload-Offset': String(offset),
				}, file.slice(offset), (loaded) => progress(offset + loaded)));
				if (sent.status !== 204) return sent;
			}
			return mustLast(await ask('GET', at.address, signal));
		}, attempts, signal, wait);
	} catch (error) {
		if (signal.aborted && at.address !== '') {
			ask('DELETE', at.address, new AbortController().signal).catch(() => {}); // else it expires
			at.address = '';
		}
		throw error;
	}
}
