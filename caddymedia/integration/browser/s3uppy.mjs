// Stores a small file and a large one, in parts, with Uppy and presigned addresses, and one that is refused.
import { assert, facts, open, run } from './lib.mjs';

await run(async () => {
	const page = await open();
	await page.evaluate(() => { console.error = () => {}; }); // Uppy logs its messages to the user there as well
	const requests = [];
	page.on('request', (request) => {
		if (request.url().startsWith(facts.service) && request.method() !== 'OPTIONS') requests.push(request.method());
	});
	const choose = (name, buffer) => page.locator('input[type=file]').first().setInputFiles({ name, mimeType: 'application/octet-stream', buffer });
	const upload = () => page.getByRole('button', { name: /^Upload \d+ files?$/ }).click();
	const { small, large, partSize } = facts.more;
	for (const [name, size, want] of [['small.bin', small, ['PUT']], ['large.bin', large, ['POST', ...Array(Math.ceil(large / partSize)).fill('PUT'), 'POST']]]) {
		requests.length = 0;
		await choose(name, Buffer.alloc(size, name));
		await upload();
		await page.getByRole('button', { name: 'Done' }).click();
		assert.deepEqual(requests, want, name);
	}
	await choose('page.php', Buffer.alloc(100, 'a page'));
	await upload();
	await page.getByText(/Failed to upload page\.php/).first().waitFor();
});
