// @ts-check
// Requests with a body whose progress is shown, and their repetition.

import { parse } from './api.js';

const firstPause = 500; // in milliseconds
const longestPause = 15000;
const attempts = 4; // of a request with an Idempotency-Key

/** @typedef {(milliseconds: number, signal: AbortSignal, reason: Error) => Promise<void>} Wait */

/** A broken connection, or an answer after which a request is repeated. Its message is a sentence. */
export class Interruption extends Error {
	/**
	 * @param {string} message
	 * @param {Answer} [answer] undefined if the connection broke
	 */
	constructor(message, answer) {
		super(message);
		this.isAnswer = answer !== undefined;
		/** The least pause that the server asks for, in milliseconds. */
		this.pause = 1000 * (Number(answer?.header('Retry-After')) || 0);
	}
}

/**
 * The interruption by an answer: the reason that the server gives is the message.
 * @param {Answer} answer
 */
export function interruptedBy(answer) {
	const { status, text } = answer;
	const { error, errors } = parse(text) ?? {};
	const reason = error || errors?.map((/** @type {Error} */ { message }) => message).join(' ');
	if (status === 409 || status === 423)
		return new Interruption('The server is still working on the first attempt.', answer);
	if (!reason) return new Interruption(`The server answered ${status}.`, answer);
	const begin = status === 429 ? 'The server asks to wait' : 'The server cannot store it now';
	return new Interruption(`${begin}: ${reason.replace(/\.$/, '')}.`, answer);
}

/**
 * Sends one request. It rejects with an Interruption if the connection breaks or if signal is
 * aborted.
 * @param {string} method
 * @param {string} address
 * @param {AbortSignal} signal
 * @param {Record<string, string>} [headers]
 * @param {XMLHttpRequestBodyInit} [body]
 * @param {(sent: number) => void} [progress]
 * @returns {Promise<Answer>}
 */
export function exchange(method, address, signal, headers = {}, body = undefined, progress = () => {}) {
	return new Promise((resolve, reject) => {
		const request = new XMLHttpRequest();
		const abort = () => request.abort();
		signal.addEventListener('abort', abort);
		request.upload.addEventListener('progress', ({ loaded }) => progress(loaded));
		request.addEventListener('load', () =>
			resolve({
				status: request.status,
				statusText: request.statusText,
				type: request.getResponseHeader('Content-Type'),
				text: request.responseText,
				header: (name) => request.getResponseHeader(name) ?? '',
			}));
		request.addEventListener('error', () => reject(new Interruption('The connection broke.')));
		request.addEventListener('abort', () => reject(new Interruption('Cancelled.')));
		request.addEventListener('loadend', () => signal.removeEventListener('abort', abort));
		request.open(method, address);
		for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
		request.send(body);
	});
}

/**
 * Runs step, and again after each error, with growing pauses. It ends after a number of attempts
 * without progress, which step reports by the function that it is called with, or when signal is
 * aborted.
 * @template T
 * @param {(progressed: () => void) => Promise<T>} step
 * @param {number} attempts
 * @param {AbortSignal} signal
 * @param {Wait} [wait]
 * @returns {Promise<T>}
 */
export async function repeat(step, attempts, signal, wait = pause) {
	for (let attempt = 1;; attempt++) {
		try {
			return await step(() => {
				attempt = 1;
			});
		} catch (error) {
			if (signal.aborted || attempt >= attempts) throw error;
			const least = Math.max(firstPause * 2 ** (attempt - 1), error.pause ?? 0);
			await wait(Math.min(least, longestPause), signal, error);
			if (signal.aborted) throw error;
		}
	}
}

/**
 * Like exchange, for a request with an Idempotency-Key. It is repeated if the connection breaks, an
 * earlier attempt still runs, or the server is busy.
 * @param {string} method
 * @param {string} address
 * @param {AbortSignal} signal
 * @param {Record<string, string>} headers
 * @param {XMLHttpRequestBodyInit} body
 * @param {(sent: number) => void} progress
 * @param {Wait} [wait]
 */
export function sendRepeatedly(method, address, signal, headers, body, progress, wait) {
	let left = attempts;
	return repeat(async () => {
		const answer = await exchange(method, address, signal, headers, body, progress);
		const asksToRepeat = Number(answer.header('Retry-After')) > 0
			&& [409, 429, 503].includes(answer.status);
		if (--left > 0 && asksToRepeat) throw interruptedBy(answer);
		return answer;
	}, attempts, signal, wait);
}

/**
 * Waits for a time, or until signal is aborted.
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export const pause = (milliseconds, signal) =>
	new Promise((done) => {
		const timer = setTimeout(end, milliseconds);
		function end() {
			clearTimeout(timer);
			signal.removeEventListener('abort', end);
			done();
		}
		signal.addEventListener('abort', end);
	});
