// Exchanges the token of your site for tickets:  node ticket.mjs
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
// It listens on 127.0.0.1:3000. The web server of your site passes POST /media-ticket to it, with the
// name of the logged-in user in the header Remote-User, which it must remove from other requests.
// A page sends the fields kind, image or file, and max_files, the number of its files.
// Its uploads vanish after two hours, unless save.mjs keeps them. An editor cannot wait: with the
// field editor they are stored at once.
// All users share the 600 tickets a minute of the account: count the requests of each user if one may want to
// shut out the others.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { getTicket, reason } from './media.mjs';

createServer(async (request, response) => {
	const answer = (status, body) => response
		.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(JSON.stringify(body));
	if (request.method !== 'POST') return answer(405, { message: 'use POST' });
	if (!request.headers['remote-user']) return answer(403, { message: 'log in first' });
	if (!(request.headers['content-length'] <= 1000)) return answer(413, { message: 'send a form of at most 1000 bytes' });
	try {
		const form = new URLSearchParams(await text(request));
		const kind = form.get('kind') === 'file' ? 'file' : 'image';
		const max_files = Math.min(Math.max(1, Number.parseInt(form.get('max_files') ?? 10, 10) || 1), 1000);
		// Remove the choice if you have no editor. The ticket can remove its files while it is valid.
		const waits = form.has('editor') ? {} : { hold: 2 * 3600, expires_in: 2 * 3600 };
		answer(200, await getTicket({ kind, alias: 'content', max_files, max_size: 2 * 1024 ** 3, ...waits }));
	} catch (error) {
		console.error(reason(error));
		answer(502, { message: 'uploads are not possible now' });
	}
}).listen(process.env.PORT ?? 3000, '127.0.0.1');
