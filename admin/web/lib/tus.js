// @ts-check
// A client of the protocol tus 1.0.0 for resumable uploads.

const attempts = 9; // without progress
const firstPause = 500; // in milliseconds
const longestPause = 15000;

const temporary = [408, 409, 423, 429, 500, 502, 503, 504];

/**
 * Sends one request. A connection that breaks rejects.
 * @param {string} method
 * @param {string} address
 * @param {AbortSignal} signal
 * @param {Record<string, string>} [headers]
 * @param {Blob} [body]
 * @param {(sent: number) => void} [progress]
 * @returns {Promise<TusAnswer>}
 */
function exchange(method, address, signal, headers = {}, body = undefined, progress = () => {}) {
	return new Promise((resolve, reject) => {
		const request = new XMLHttpRequest();
		const abort = () => request.abort();
		signal.addEventListener('abort', abort);
		request.upload.addEventListener('progress', ({ loaded }) => progress(loaded));
		request.addEventListener('load', () =>
			resolve({
				status: request.status,
				type: request.getResponseHeader('Content-Type'),
				text: request.responseText,
				header: (name) => request.getResponseHeader(name) ?? '',
			}));
		request.addEventListener('error', () => reject(new Error('The connection broke.')));
		request.addEventListener('abort', () => reject(new Error('Cancelled.')));
		request.addEventListener('loadend', () => signal.removeEventListener('abort', abort));
		request.open(method, address);
		request.setRequestHeader('Tus-Resumable', '1.0.0');
		for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
		request.send(body);
	});
}

/**
 * The header Upload-Metadata: names, and values in Base64. Empty values are omitted.
 * @param {Record<string, string>} values
 */
export const metadataOf = (values) =>
	Object.entries(values).filter(([, value]) => value !== '').map(([name, value]) =>
		`${name} ${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}`
	).join(',');

/** An answer after which the upload is continued. */
class Interruption extends Error {}

/** @param {TusAnswer} answer */
function mustLast(answer) {
	if (temporary.includes(answer.status)) throw new Interruption(`The server answered ${answer.status}.`);
	return answer;
}

/**
 * Uploads a file to an endpoint, and continues after cuts. Returns the last answer: that of the
 * upload as a form, or a refusal; null if the server has no resumable uploads. It rejects if the
 * connection stays broken, or if signal is aborted.
 * @param {string} endpoint
 * @param {Blob} file
 * @param {Record<string, string>} metadata
 * @param {(sent: number) => void} progress
 * @param {AbortSignal} signal
 * @param {(milliseconds: number) => Promise<void>} [wait]
 * @returns {Promise<TusAnswer | null>}
 */
export async function uploadResumable(endpoint, file, metadata, progress, signal, wait = pause) {
	let address = '';
	let offset = 0;
	for (let attempt = 1;; attempt++) {
		try {
			if (address === '') {
				const created = mustLast(await exchange('POST', endpoint, signal, {
					'Upload-Length': String(file.size),
					'Upload-Metadata': metadataOf(metadata),
				}));
				if (created.status === 404) return null;
				if (created.status !== 201) return created;
				address = created.header('Location');
			} else {
				const state = mustLast(await exchange('HEAD', address, signal));
				if (state.status !== 200) return await exchange('GET', address, signal); // it says why
				const stored = Number(state.header('Upload-Offset'));
				if (stored > offset) attempt = 1;
				offset = stored;
			}
			progress(offset);
			if (offset < file.size) {
				const sent = mustLast(await exchange('PATCH', address, signal, {
					'Content-Type': 'application/offset+octet-stream',
					'Upload-Offset': String(offset),
				}, file.slice(offset), (loaded) => progress(offset + loaded)));
				if (sent.status !== 204) return sent;
			}
			return mustLast(await exchange('GET', address, signal));
		} catch (error) {
			if (signal.aborted && address !== '')
				exchange('DELETE', address, new AbortController().signal).catch(() => {}); // else it expires
			if (signal.aborted || attempt >= attempts) throw error;
			await wait(Math.min(firstPause * 2 ** (attempt - 1), longestPause));
			if (signal.aborted) throw error;
		}
	}
}

/** @param {number} milliseconds */
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
