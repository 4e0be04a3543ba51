// Saves the form of a page whose uploads wait for it:  node save.mjs
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
// It listens on 127.0.0.1:3000. The web server of your site passes POST /save to it, with the name of
// the logged-in user in the header Remote-User, which it must remove from other requests.
// The page sends the field held[] for each upload, in their order, and kind, image or file.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { keep, MediaRefusal, reason } from './media.mjs';

createServer(async (request, response) => {
	const answer = (status, ...lines) => response
		.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(lines.join('\n'));
	if (request.method !== 'POST') return answer(405, 'use POST');
	if (!request.headers['remote-user']) return answer(403, 'log in first');
	if (!(request.headers['content-length'] <= 100_000)) return answer(413, 'send a form of at most 100,000 bytes');
	try {
		const form = new URLSearchParams(await text(request));
		const kind = form.get('kind') === 'file' ? 'file' : 'image';
		const items = await keep(kind, 'content', form.getAll('held[]'));
		// Save the post in your database here, with the filename of each item.
		answer(200, 'It is saved.', ...items.map((item) => item.full_path));
	} catch (error) {
		if (error instanceof MediaRefusal) return answer(422, error.message); // such as: an upload has ended
		console.error(reason(error));
		answer(502, 'It cannot be saved now. Go back and try it again.');
	}
}).listen(process.env.PORT ?? 3000, '127.0.0.1');
