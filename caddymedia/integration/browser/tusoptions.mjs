// Uploads with the options of tus-js-client, and refused ones, over the version of HTTP that the facts name.
import { assert, facts, open, run } from './lib.mjs';

const { protocol } = facts.more;

/** Uploads a text in the page. Returns what the client and the service say of it. */
const upload = (page, name, options, settings = {}) => page.evaluate(async ({ name, options, settings, token }) => {
	const size = settings.size ?? 3 * 1024 * 1024 + 17;
	const line = `${name} has lines of the same text\n`;
	const file = new File([line.repeat(size / line.length + 1).slice(0, size)], name, { type: 'text/plain', lastModified: 1 });
	const requests = [];
	const send = (previous, abort) => new Promise((resolve, reject) => {
		setTimeout(() => reject(new Error(`no end after ${requests}`)), 180_000);
		const upload = new tus.Upload(file, {
			endpoint: '/api/upload/file/resumable', metadata: { filename: file.name, sub_folder: '/' },
			headers: { Authorization: `Bearer ${token}` }, ...options,
			onBeforeRequest: (request) => { requests.push(`${request.getMethod()} ${request.getHeader('Upload-Concat')?.slice(0, 5) ?? ''}`.trim()); },
			onError: reject,
			onSuccess: ({ lastResponse }) => resolve({ upload, filename: lastResponse.getHeader('Media-Filename'), address: lastResponse.getHeader('Media-Full-Path') }),
			onProgress(sent) {
				if (abort && sent > size / 3) {
					abort = false;
					upload.abort().then(() => settings.reload ? resolve({}) : upload.start());
				}
			},
		});
		if (previous) upload.resumeFromPreviousUpload(previous);
		upload.start();
	});
	const previous = async () => new tus.Upload(file, { ...options, endpoint: '/api/upload/file/resumable' }).findPreviousUploads();

	let result = await send(undefined, settings.abort);
	if (settings.reload || settings.again) result = await send((await previous())[0]);
	const remembered = (await previous()).length;
	const bytes = (blob) => blob.arrayBuffer().then((buffer) => crypto.subtle.digest('SHA-256', buffer)).then((sum) => String(new Uint8Array(sum)));
	const item = await fetch(result.address);
	const equal = item.ok && await bytes(await item.blob()) === await bytes(file);
	let terminated;
	if (settings.terminate) {
		await result.upload.abort(true);
		terminated = (await fetch(result.upload.url, { method: 'HEAD', headers: { Authorization: `Bearer ${token}`, 'Tus-Resumable': '1.0.0' } })).status;
	}
	return { filename: result.filename, equal, remembered, requests, terminated };
}, { name, options, settings, token: facts.more.token });

const chunk = 1024 * 1024;
const cases = {
	plain: [{}, {}, { requests: ['POST', 'PATCH'], remembered: 1 }],
	empty: [{}, { size: 0 }, { requests: ['POST'] }],
	parallel: [{ parallelUploads: 3 }, {}, { remembered: 1 }],
	'parallel-chunks': [{ parallelUploads: 2, chunkSize: chunk }, {}, {}],
	'parallel-during-creation': [{ parallelUploads: 3, uploadDataDuringCreation: true }, {}, { requests: ['POST parti', 'POST parti', 'POST parti', 'POST final'] }],
	'parallel-again': [{ parallelUploads: 3, chunkSize: chunk / 4 }, { abort: true, reload: true }, {}],
	deferred: [{ uploadLengthDeferred: true }, {}, { requests: ['POST', 'PATCH'] }],
	'deferred-chunks': [{ uploadLengthDeferred: true, chunkSize: chunk }, {}, { requests: ['POST', 'PATCH', 'PATCH', 'PATCH', 'PATCH'] }],
	'during-creation': [{ uploadDataDuringCreation: true }, {}, { requests: ['POST'] }],
	'during-creation-chunks': [{ uploadDataDuringCreation: true, chunkSize: chunk }, {}, { requests: ['POST', 'PATCH', 'PATCH', 'PATCH'] }],
	'during-creation-deferred': [{ uploadDataDuringCreation: true, uploadLengthDeferred: true, chunkSize: chunk }, {}, {}],
	chunks: [{ chunkSize: chunk }, {}, { requests: ['POST', 'PATCH', 'PATCH', 'PATCH', 'PATCH'] }],
	stopped: [{ chunkSize: chunk / 2 }, { abort: true }, {}],
	reloaded: [{ chunkSize: chunk / 2 }, { abort: true, reload: true }, {}],
	again: [{}, { again: true }, { requests: ['POST', 'PATCH', 'HEAD'], remembered: 1 }],
	forgotten: [{ removeFingerprintOnSuccess: true }, {}, { remembered: 0 }],
	override: [{ overridePatchMethod: true }, {}, { requests: ['POST', 'POST'] }],
	'request-id': [{ addRequestId: true }, {}, {}],
	terminated: [{}, { terminate: true }, { terminated: 404, requests: ['POST', 'PATCH', 'DELETE'] }],
};

await run(async () => {
	const page = await open();
	for (const [label, [options, settings, want]] of Object.entries(cases)) {
		const name = `${label}-${protocol.replace('/1.1', '')}.txt`;
		const got = await upload(page, name, options, settings).catch((error) => assert.fail(`${name}: ${error.message}`));
		for (const [field, value] of Object.entries({ filename: name, equal: true, ...want })) {
			assert.deepEqual(got[field], value, `${name}: ${field}: ${JSON.stringify(got)}`);
		}
	}
	const refused = await page.evaluate(async () => {
		const body = new Blob([new Uint8Array(300_000)]);
		const statuses = [];
		for (let i = 0; i < 16; i++) { // that its answer is lost depends on how much of a body is under way
			const late = new Promise((resolve) => { setTimeout(resolve, 20_000, 'none'); });
			const answer = fetch('/api/upload/file', { method: 'POST', body }).then((response) => response.text().then(() => response.status));
			statuses.push(await Promise.race([answer, late]));
		}
		return statuses;
	});
	assert.deepEqual([...new Set(refused)], [401], `refused: ${refused}`);
	const used = await page.evaluate(() => performance.getEntriesByType('resource')
		.filter(({ name }) => name.includes('/api/upload/')).map(({ nextHopProtocol }) => nextHopProtocol).filter(Boolean)); // aborted requests have none
	assert.ok(used.length > 0 && used.every((version) => version === protocol), `${[...new Set(used)]} instead of ${protocol}`);
});
