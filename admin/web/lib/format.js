// @ts-check
// Formats and parses names, sizes and times.

/** @type {Record<string, string>} */
const spelling = {
	id: 'ID',
	url: 'URL',
	tls: 'TLS',
	svg: 'SVG',
	webp: 'WebP',
	cdn: 'CDN',
	ca: 'CA',
	api: 'API',
	ssh: 'SSH',
	s3: 'S3',
	http: 'HTTP',
	html: 'HTML',
};

/**
 * The label of an option: "CDN base" for "cdn_base".
 * @param {string} name
 */
export function label(name) {
	const text = name.split('_').map((word) => spelling[word] ?? word).join(' ');
	return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * The name of a kind of alias.
 * @param {string} kind
 */
export const kindTitle = (kind) => (kind === 'img' ? 'image alias' : 'file alias');

/**
 * The section of the configuration with aliases of a kind.
 * @param {string} kind
 */
export const sectionOf = (kind) => (kind === 'img' ? 'image_aliases' : 'file_aliases');

/**
 * The value of an option as text.
 * @param {any} value
 * @returns {string}
 */
export function text(value) {
	if (Array.isArray(value)) return value.join(', ');
	if (typeof value === 'boolean') return value ? 'on' : 'off';
	if (typeof value !== 'object' || value === null) return String(value);
	return Object.entries(value).map(([name, inner]) => `${label(name)}: ${text(inner)}`).join(', ') || 'on';
}

/**
 * A value of the configuration as it is entered.
 * @param {any} value
 * @param {string} [type] of its option
 */
export function input(value, type) {
	if (typeof value !== 'number') return text(value);
	return type === 'size' ? exactSize(value) : type === 'duration' ? duration(value) : text(value);
}

/**
 * The default of a switch in words: "`true` with `endpoint`" becomes "on with `endpoint`".
 * @param {string | undefined} text
 */
export const onOff = (text) =>
	(text ?? '').replace(/`(true|false)`/g, (_, word) => (word === 'true' ? 'on' : 'off'));

/**
 * The first sentence of a help text.
 * @param {string | undefined} text
 */
export const firstSentence = (text) => /^.*?[.!?](?=\s|$)/s.exec(text ?? '')?.[0] ?? text ?? '';

/**
 * A default that is one `word`, or null for a description.
 * @param {string | undefined} text
 */
export const literal = (text) => /^`([^`]*)`$/.exec((text ?? '').trim())?.[1] ?? null;

/**
 * A number with its noun: plural(2, 'item') is "2 items".
 * @param {number} n
 * @param {string} noun
 * @param {string} [many]
 */
export const plural = (n, noun, many = `${noun}s`) => `${n.toLocaleString('en')} ${n === 1 ? noun : many}`;

/**
 * That an action has failed on some items: notDone(2, 5, 'moved') is "2 of 5 items not moved".
 * @param {number} count
 * @param {number} total
 * @param {string} done
 */
export const notDone = (count, total, done) =>
	total === 1 ? `The item is not ${done}`
		: `${count.toLocaleString('en')} of ${plural(total, 'item')} not ${done}`;

/**
 * An estimated time, as rough as an estimate is.
 * @param {number} ms
 */
export function timeLeft(ms) {
	const minutes = Math.ceil(ms / 60000);
	if (minutes <= 1) return 'less than a minute left';
	return minutes < 100 ? `about ${minutes} minutes left` : `about ${Math.round(minutes / 60)} hours left`;
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * A rounded size for display.
 * @param {number} bytes
 */
export function size(bytes) {
	let unit = 0;
	while (bytes >= 1024 && unit < units.length - 1) {
		bytes /= 1024;
		unit++;
	}
	return `${unit && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

/** @type {[number, string][]} */
const exactUnits = [[1024 ** 4, 'TiB'], [1024 ** 3, 'GiB'], [1024 ** 2, 'MiB'], [1024, 'KiB'], [1e12, 'TB'], [
	1e9,
	'GB',
], [1e6, 'MB'], [1e3, 'kB']];

/**
 * An exact size, for limits and for editing: in the first unit in which it is whole.
 * @param {number} bytes
 */
export function exactSize(bytes) {
	const [unit, name] = exactUnits.find(([unit]) => bytes >= unit && bytes % unit === 0) ?? [1, 'B'];
	return `${bytes / unit} ${name}`;
}

/**
 * Parses a size such as "32 MiB", "1.5 GB" or "4096" to bytes; NaN if invalid.
 * @param {string} text
 */
export function parseSize(text) {
	const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?))?b?$/i.exec(text.trim());
	if (!match) return NaN;
	const power = match[2] ? 'kmgt'.indexOf(match[2].toLowerCase()) + 1 : 0;
	return Math.round(Number(match[1]) * (match[3] ? 1024 : 1000) ** power);
}

/** @type {[string, number][]} */
const steps = [['h', 3600e9], ['m', 60e9], ['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]];

/**
 * A duration for editing: nanoseconds become "1h30m", texts are unchanged.
 * @param {number | string | undefined} value
 */
export function duration(value) {
	if (typeof value !== 'number') return value ?? '';
	let text = '';
	for (const [unit, length] of steps) {
		const n = Math.floor(value / length);
		if (n > 0) text += n + unit;
		value -= n * length;
	}
	return text;
}

/**
 * Whether a text is a valid duration.
 * @param {string} text
 */
export const isDuration = (text) => /^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d))+$/.test(text);

/** @type {[string, number][]} */
const spans = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

/**
 * A period in one unit, such as "14 days" or "36 hours".
 * @param {number} seconds
 */
export function span(seconds) {
	const [unit, length] = spans.find(([, each]) => seconds % each === 0 || seconds >= 2 * each)
		?? ['second', 1];
	return plural(Math.ceil(seconds / length), unit);
}

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const ages = [['year', 31536000], ['month', 2592000], ['day', 86400], ['hour', 3600], ['minute', 60]];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/**
 * The age of a time, in words.
 * @param {string} time
 * @param {number} [now]
 */
export function ago(time, now = Date.now()) {
	const seconds = Math.round((new Date(time).getTime() - now) / 1000);
	for (const [unit, length] of ages) {
		if (Math.abs(seconds) >= length)
			return relative.format((seconds < 0 ? Math.ceil : Math.round)(seconds / length), unit);
	}
	return seconds > -5 ? 'just now' : relative.format(seconds, 'second');
}

const moments = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/**
 * A time in the user's time zone.
 * @param {string} time
 */
export const moment = (time) => moments.format(new Date(time));

/**
 * Whether a time is set: not Go's zero time.
 * @param {string | undefined} time
 * @returns {time is string}
 */
export const isTime = (time) => Boolean(time) && !time?.startsWith('0001-');

/**
 * An elapsed time.
 * @param {number} ms
 */
export const elapsed = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

/** @type {Record<string, string>} */
const families = { image: 'image', video: 'film', audio: 'sound' };

/**
 * A media type in words, such as "JPEG image"; as it is if there are none.
 * @param {string} type
 */
export function typeName(type) {
	const [, family, name] = /^(\w+)\/(?:x-)?([a-z0-9]{2,5})(?=$|;|\+)/.exec(type) ?? [];
	if (families[family]) return `${name.toUpperCase()} ${families[family]}`;
	if (type === 'application/pdf') return 'PDF';
	return type.startsWith('text/plain') ? 'Text' : type;
}

/**
 * Escapes text for HTML elements and attributes. Braces are escaped too, since a page may be a Caddy
 * template.
 * @param {string} text
 */
export const escaped = (text) => text.replace(/[&<>"'`{}]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/**
 * The name of a folder as an alias stores it, as far as it is known here: letters of other scripts
 * are converted by the server.
 * @param {string} name
 * @param {boolean} [sanitize]
 */
export function folderName(name, sanitize) {
	if (!sanitize) return name;
	const folded = name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
	if (/[^ -~]/.test(folded)) return name;
	return folded.replace(/[^a-z0-9_]+/g, '-').replace(/^-|-$/g, '') || name;
}
