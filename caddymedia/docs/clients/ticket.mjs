// Exchanges the token of your site for tickets:  node ticket.mjs
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
// It listens on 127.0.0.1:3000. The web server of your site passes POST /media-ticket to it, with the
// name of the logged-in user in the header Remote-User, which it must remove from other requests.
import { createServer } from 'node:http';

const [server, apiKey, password] = ['MEDIA_SERVER', 'MEDIA_API_KEY', 'MEDIA_PASSWORD'].map((name) => {
	if (process.env[name]) return process.env[name];
	console.error(`set ${name} in the environment`);
	process.exit(1);
});

/** Sends a form. Returns the status and the answer, which is JSON in success and in failure. */
async function post(path, fields, headers = {}) {
	const response = await fetch(server + path, {
		method: 'POST', body: new URLSearchParams(fields), headers, signal: AbortSignal.timeout(10_000),
	});
	return { status: response.status, ...await response.json() };
}

let token; // is valid for many tickets

async function getToken() {
	if (!token || token.expires_at < Date.now() / 1000 + 60) {
		const answer = await post('/api/auth/generateToken', { api_key: apiKey, password });
		if (!answer.success) throw new Error(`no token: ${answer.message}`);
		token = answer;
	}
	return token.token;
}

async function getTicket(fields) {
	const request = async () => post('/api/auth/ticket', fields, { Authorization: `Bearer ${await getToken()}` });
	let answer = await request();
	if (answer.status === 401) { // the token has ended before its time
		token = undefined;
		answer = await request();
	}
	if (!answer.success) throw new Error(`no ticket: ${answer.message}`);
	return { ticket: answer.ticket, expires_at: answer.expires_at };
}

createServer(async (request, response) => {
	const answer = (status, body) => response
		.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(JSON.stringify(body));
	if (request.method !== 'POST') return answer(405, { message: 'use POST' });
	if (!request.headers['remote-user']) return answer(403, { message: 'log in first' });
	try {
		answer(200, await getTicket({ kind: 'file', alias: 'content', max_files: 10, max_size: 2 * 1024 ** 3 }));
	} catch (error) {
		// fetch says why a server cannot be reached in the cause.
		console.error([error.message, error.cause?.message].filter(Boolean).join(': '));
		answer(502, { message: 'uploads are not possible now' });
	}
}).listen(process.env.PORT ?? 3000, '127.0.0.1');
