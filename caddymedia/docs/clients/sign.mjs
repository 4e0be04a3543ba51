// Prints the query of a signed address:
//
// node sign.mjs <kind> <alias> filename|folder <name> <expires> [<rendition> [<download> [<generation>]]]
//
// MEDIA_SIGNING_KEY is in the environment.

import { createHmac } from 'node:crypto';
import { pathToFileURL } from 'node:url';

/** Returns the query of an address of a private item, or of all below a folder. */
export function sign(key, kind, alias, scope, name, expires, rendition = '', download = '', generation = 0) {
	const text = ['media1', kind, alias, scope, name, rendition, `${expires}`, download, `${generation}`]
		.map((field) => `${Buffer.byteLength(field)}:${field}`)
		.join('');
	const signature = createHmac('sha256', key).update(text).digest('base64url');
	const query = new URLSearchParams({ expires, signature });
	if (scope === 'folder') query.set('scope', name);
	if (download) query.set('download', download);
	return query.toString();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	const key = process.env.MEDIA_SIGNING_KEY;
	const given = process.argv.slice(2);
	if (!key) {
		console.error('set MEDIA_SIGNING_KEY in the environment');
		process.exit(1);
	}
	if (given.length < 5 || given.length > 8) {
		console.error('node sign.mjs <kind> <alias> filename|folder <name> <expires> [<rendition> [<download> [<generation>]]]');
		process.exit(1);
	}
	console.log(sign(key, ...given));
}
