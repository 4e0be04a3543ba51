// @ts-check
// The queue of the uploads of an alias, without their look.
import { newAttempt } from './transfer.js';

const parallel = 3;

/**
 * A queue. send transfers an entry and returns its stored filename. changed is called after each
 * change, idle when nothing runs any more, with the entries that have ended since the last time.
 * @param {(entry: QueuedUpload, signal: AbortSignal) => Promise<string>} send
 * @param {() => void} changed
 * @param {(ended: QueuedUpload[]) => void} idle
 */
export function uploadQueue(send, changed, idle) {
	/** @type {QueuedUpload[]} */
	let entries = [];
	/** @type {QueuedUpload[]} */
	let waiting = [];
	/** @type {Set<QueuedUpload>} */
	const ended = new Set();
	let running = 0;
	/** @type {Set<{cancelled: boolean}>} */
	const additions = new Set();
	/** @type {any} */
	let stopped = null;

	function next() {
		while (!stopped && running < parallel && waiting.length > 0) {
			const entry = /** @type {QueuedUpload} */ (waiting.shift());
			if (entry.state === 'waiting') start(entry);
		}
		changed();
		if (running > 0 || additions.size > 0 || ended.size === 0) return;
		const list = [...ended];
		ended.clear();
		idle(list);
	}

	/** @param {QueuedUpload} entry */
	async function start(entry) {
		running++;
		entry.state = 'running';
		entry.sent = 0;
		entry.control = new AbortController();
		try {
			entry.filename = await send(entry, entry.control.signal);
			entry.state = 'stored';
			entry.upload.file = undefined; // it may be large
		} catch (error) {
			entry.error = error;
			entry.state = entry.control.signal.aborted ? 'cancelled' : 'failed';
			if (error.loggedOut || error.unreachable) stopped = error; // so would all others
		}
		running--;
		ended.add(entry);
		next();
	}

	return {
		/** All entries in the order in which they were added. */
		entries: () => entries,
		/** Why nothing more is started, null if it is. */
		stopped: () => stopped,
		/** Whether more files may come. */
		isGrowing: () => additions.size > 0,
		/**
		 * Starts adding files: the queue does not become idle before done is called. If it is cancelled,
		 * no more may be added.
		 */
		adding() {
			stopped = null;
			const addition = {
				cancelled: false,
				done: () => {
					additions.delete(addition);
					next();
				},
			};
			additions.add(addition);
			return addition;
		},
		/**
		 * Adds files. One with a reason why it is refused is not sent.
		 * @param {{upload: Upload, subFolder: string, refused: string}[]} files
		 */
		add(files) {
			for (const { upload, subFolder, refused } of files) {
				/** @type {QueuedUpload} */
				const entry = {
					upload,
					subFolder,
					size: upload.file?.size ?? 0,
					sent: 0,
					state: refused ? 'refused' : 'waiting',
					error: refused ? new Error(refused) : null,
					attempt: newAttempt(),
				};
				entries.push(entry);
				if (refused) ended.add(entry);
				else waiting.push(entry);
			}
			next();
		},
		/**
		 * Sends files again, and goes on with those that wait.
		 * @param {QueuedUpload[]} list
		 */
		again(list) {
			stopped = null;
			for (const entry of list) {
				entry.state = 'waiting';
				ended.delete(entry);
			}
			waiting.unshift(...list);
			next();
		},
		/** @param {QueuedUpload[]} [list] all if undefined, and those that would still be added */
		cancel(list) {
			if (!list) { for (const addition of additions) addition.cancelled = true; }
			for (const entry of list ?? entries) {
				if (entry.state === 'running') entry.control?.abort();
				else if (entry.state === 'waiting') {
					entry.state = 'cancelled';
					entry.error = new Error('Cancelled.');
					ended.add(entry);
				}
			}
			waiting = waiting.filter(({ state }) => state === 'waiting');
			if (waiting.length === 0) stopped = null;
			next();
		},
		/** Forgets the entries that have ended. */
		clear() {
			entries = entries.filter(({ state }) => state === 'waiting' || state === 'running');
		},
	};
}

/**
 * The numbers of entries by state, and the bytes of those that are or shall be stored.
 * @param {QueuedUpload[]} entries
 */
export function totals(entries) {
	const sum = { waiting: 0, running: 0, stored: 0, failed: 0, cancelled: 0, refused: 0, bytes: 0, sent: 0 };
	for (const { state, size, sent } of entries) {
		sum[state]++;
		if (state !== 'waiting' && state !== 'running' && state !== 'stored') continue;
		sum.bytes += size;
		sum.sent += state === 'stored' ? size : state === 'running' ? Math.min(sent, size) : 0;
	}
	return sum;
}

/** @typedef {{time: number, bytes: number, files: number}} Sample */

const least = 5000; // milliseconds, before a speed means something
const longest = 30000;

/**
 * Estimates the remaining milliseconds by the last samples, to which now is added; NaN if it cannot
 * be known. Small files cost time by their number, large ones by their bytes: the later end counts.
 * @param {Sample[]} samples
 * @param {Sample} now
 * @param {{bytes: number, files: number}} left
 */
export function remaining(samples, now, left) {
	samples.push(now);
	while (samples[0].time < now.time - longest) samples.shift();
	const [first] = samples;
	const passed = now.time - first.time;
	const bytes = left.bytes * passed / (now.bytes - first.bytes);
	const files = left.files * passed / (now.files - first.files);
	if (passed < least || !(now.bytes > first.bytes)) return NaN;
	return Number.isFinite(files) ? Math.max(bytes, files) : bytes;
}
