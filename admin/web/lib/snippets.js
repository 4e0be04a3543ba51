// @ts-check
// Texts to copy: about an item for pages, documents and templates, about an account for S3.
import { escaped } from './format.js';
import { absolute, nameOf, parts } from './links.js';

/**
 * The address of an item or rendition as a browser can open it, with scheme and host. One of a private
 * item is signed.
 * @param {Item} item
 * @param {string} address
 */
export const usable = (item, address) => absolute(item.query ? `${address}?${item.query}` : address);

/**
 * The end of the signed addresses of a private item; null without one.
 * @param {Item} item
 */
export function signedUntil(item) {
	const seconds = Number(new URLSearchParams(item.query).get('expires'));
	return seconds ? new Date(seconds * 1000).toISOString() : null;
}

/**
 * Texts to copy, by their titles. A private item without a signed address has only the function that
 * signs it.
 * @param {Alias} alias
 * @param {Item} item
 * @param {string} alt the alternative text of an image
 * @returns {Record<string, string>}
 */
export function snippets(alias, item, alt) {
	const template = { 'Template function': templateOf(alias, item) };
	if (alias.private && !item.query) return template;
	const address = usable(item, item.full_path);
	const name = nameOf(item.filename);
	if (alias.kind === 'file') {
		return {
			'HTML link': `<a href="${escaped(address)}">${escaped(name)}</a>`,
			Markdown: `[${markdown(name)}](${destination(address)})`,
			...template,
		};
	}
	const srcset = candidates(item);
	const img = srcset
		? `<img src="${escaped(address)}"\n  srcset="${
			escaped(srcset.join(',\n    '))
		}"\n  sizes="100vw" alt="${escaped(alt)}">`
		: `<img src="${escaped(address)}" alt="${escaped(alt)}">`;
	const picture = item.webp && !srcset // browsers would never look at the renditions
		&& `<picture>\n  <source srcset="${
			escaped(usable(item, item.webp))
		}" type="image/webp">\n  ${img}\n</picture>`;
	return {
		...(picture ? { 'HTML picture': picture } : { 'HTML image': img }),
		Markdown: `![${markdown(alt)}](${destination(address)})`,
		...(srcset && { srcset: srcset.join(', ') }),
		...template,
	};
}

/**
 * Escapes text for a link text or an alternative text in Markdown.
 * @param {string} text
 */
const markdown = (text) => text.replace(/\s+/g, ' ').replace(/[\\`*_[\]<>!&|~{}]/g, '\\$&');

/**
 * An address for a link in Markdown, which would end at a space or an unpaired parenthesis.
 * @param {string} address
 */
const destination = (address) =>
	address.replace(/[()<>\\\s]/g, (sign) =>
		`%${sign.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`);

/**
 * The candidates of a srcset with whole addresses; null if there is no choice.
 * @param {Item} item
 */
function candidates(item) {
	const list = (item.srcset ?? '').split(', ').map((candidate) => {
		const [address, width] = candidate.split(' ');
		return `${usable(item, address)} ${width}`;
	});
	return list.length > 1 ? list : null;
}

/**
 * @param {Alias} alias
 * @param {Item} item
 */
function templateOf(alias, item) {
	const name = alias.kind === 'img' ? 'image' : 'file';
	if (alias.private) return `{{${name}_url "${alias.name}" ${JSON.stringify(item.filename)} "1h"}}`;
	const base = absolute(alias.address) + '/';
	const rest = item.full_path.startsWith(base) ? item.full_path.slice(base.length)
		: parts(item.filename).map(encodeURIComponent).join('/');
	return `{{${name}_path "${alias.name}"}}/${rest}`;
}

/**
 * The settings of programs that know S3, by their titles. They have words in place of the secret. A site
 * without a host name is assumed to have that of the panel.
 * @param {string} key
 * @param {S3Endpoint} endpoint
 */
export function s3Settings(key, { address, region }) {
	const endpoint = address.replace('//*', '//' + location.hostname);
	return {
		'rclone, in its configuration file': `[media]
type = s3
provider = Other
endpoint = ${endpoint}
region = ${region}
access_key_id = ${key}
secret_access_key = the S3 secret`,
		'AWS environment variables': `export AWS_ENDPOINT_URL='${endpoint}'
export AWS_REGION='${region}' AWS_DEFAULT_REGION='${region}'
export AWS_ACCESS_KEY_ID='${key}'
export AWS_SECRET_ACCESS_KEY='the S3 secret'`,
	};
}
