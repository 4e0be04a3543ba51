// @ts-check
// Requests of the pages to the server.

const retryDelays = [300, 1200]; // a reload of the configuration may cut a connection

/** A refusal by the server, with its message. */
export class ApiError extends Error {
	/**
	 * @param {string} message
	 * @param {number} status
	 * @param {Record<string, any>} body
	 * @param {string | null} etag
	 */
	constructor(message, status, body, etag) {
		super(message);
		this.status = status;
		this.body = body;
		this.option = body.option ?? '';
		this.etag = etag;
	}
}

/** The session has ended, by the answer of the panel or of a login in front of it. */
export class LoggedOutError extends ApiError {
	/** @param {number} status */
	constructor(status) {
		super('You are logged out.', status, {}, null);
		this.loggedOut = true;
	}
}

/**
 * Whether an answer to an API route comes from a login: a refusal, a redirect, or a page instead of
 * JSON.
 * @param {number} status
 * @param {string | null} contentType
 */
export const isLogin = (status, contentType) =>
	status === 0 || status === 401
	|| ((status === 403 || (status >= 200 && status < 400)) && /^text\/html/i.test(contentType ?? ''));

/**
 * The address of an API route. Segments are encoded, empty query values omitted.
 * @param {string[]} segments
 * @param {Record<string, any>} [query]
 */
export function route(segments, query = {}) {
	const search = new URLSearchParams(
		Object.entries(query).filter(([, value]) => value !== '' && value != null),
	);
	const path = 'api/' + segments.map(encodeURIComponent).join('/');
	return search.size ? `${path}?${search}` : path;
}

/**
 * Reads a route. The request is repeated if the connection breaks.
 * @param {string[]} segments
 * @param {Record<string, any>} [query]
 * @param {AbortSignal} [signal]
 * @param {Record<string, string>} [headers]
 */
export async function get(segments, query, signal, headers) {
	return (await read(segments, query, signal, headers)).body;
}

/** The header of automatic refreshes, which do not extend a session. */
export const background = { 'Media-Background': '1' };

/**
 * Like get, with the ETag.
 * @param {string[]} segments
 * @param {Record<string, any>} [query]
 * @param {AbortSignal} [signal]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<{body: any, etag: string | null}>}
 */
export const read = (segments, query, signal, headers) =>
	repeated(() => call('GET', route(segments, query), { signal, headers }));

/**
 * Repeats a request if the connection breaks. A repetition is refused with 409 while the first one
 * still runs.
 * @template T
 * @param {() => Promise<T>} request
 * @returns {Promise<T>}
 */
async function repeated(request) {
	for (let attempt = 0;; attempt++) {
		try {
			return await request();
		} catch (error) {
			const isRunning = attempt > 0 && error.status === 409;
			const isFinal = (error instanceof ApiError && !isRunning) || error.name === 'AbortError';
			if (isFinal || attempt >= retryDelays.length) throw error;
			await new Promise((done) => setTimeout(done, retryDelays[attempt]));
		}
	}
}

/** A new value of the header Idempotency-Key, which makes it safe to send a request again. */
export const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].join('-');

/**
 * Sends a form. Its key makes it safe to repeat, so it is repeated if the connection breaks.
 * @param {string[]} segments
 * @param {[string, string][]} fields
 * @param {string | null} [etag]
 */
export async function post(segments, fields, etag) {
	/** @type {Record<string, string>} */
	const headers = { 'Idempotency-Key': newKey() };
	if (etag) headers['If-Match'] = etag;
	const body = new URLSearchParams(fields);
	return (await repeated(() => call('POST', route(segments), { headers, body }))).body;
}

/**
 * Sends a change, which is never repeated automatically.
 * @param {string} method
 * @param {string[]} segments
 * @param {{body?: any, etag?: string | null, create?: boolean}} [options]
 * @returns {Promise<{body: any, etag: string | null}>}
 */
export async function send(method, segments, { body, etag, create } = {}) {
	/** @type {Record<string, string>} */
	const headers = { 'Content-Type': 'application/json' };
	if (create) headers['If-None-Match'] = '*';
	if (etag) headers['If-Match'] = etag;
	try {
		return await call(method, route(segments), {
			headers,
			body: body === undefined ? undefined : JSON.stringify(body),
		});
	} catch (error) {
		if (error instanceof ApiError) throw error;
		throw new Error(
			'The connection broke before the answer arrived. Check whether the change was made before you try again.',
			{ cause: error },
		);
	}
}

/**
 * Reads the first bytes of an address that is no JSON, such as a preview.
 * @param {string} address
 * @param {number} length
 */
export async function readStart(address, length) {
	const response = await answerTo(address, { headers: { Range: `bytes=0-${length - 1}` } });
	if (!response.ok || isLogin(response.status, response.headers.get('Content-Type')))
		await parsed(response);
	return new Uint8Array(await response.arrayBuffer());
}

/**
 * @param {string} method
 * @param {string} address
 * @param {RequestInit} options
 */
async function call(method, address, options) {
	const response = await answerTo(address, { method, ...options });
	return { body: await parsed(response), etag: response.headers.get('ETag') };
}

/**
 * @param {string} address
 * @param {RequestInit} options
 */
async function answerTo(address, options) {
	try {
		return await fetch(address, {
			...options,
			cache: 'no-store',
			credentials: 'same-origin',
			redirect: 'manual',
		});
	} catch (error) {
		if (error.name === 'AbortError') throw error;
		throw new Error('The server is unreachable.', { cause: error });
	}
}

/**
 * Like bodyOf.
 * @param {Response} response
 */
async function parsed(response) {
	const { status, statusText, headers } = response;
	return bodyOf({
		status,
		statusText,
		type: headers.get('Content-Type'),
		text: await response.text(),
		header: (name) => headers.get(name) ?? '',
	});
}

/**
 * The parsed body of an answer; a refusal is thrown.
 * @param {Answer} answer
 */
export function bodyOf({ status, statusText, type, text, header }) {
	if (isLogin(status, type)) throw new LoggedOutError(status);
	const body = parse(text);
	if (status >= 200 && status < 300 && body !== null) return body;
	const { error, errors } = body ?? {};
	const message = error || errors?.map((/** @type {Error} */ { message }) => message).join(' ');
	throw new ApiError(message || `The server answered ${status} ${statusText}`.trim() + '.', status,
		body ?? {}, header('ETag') || null);
}

/**
 * Parses JSON: {} if text is empty, null if it is invalid.
 * @param {string} text
 */
export function parse(text) {
	try {
		return text === '' ? {} : JSON.parse(text);
	} catch {
		return null;
	}
}
