// Uploads images on the documented page with Uppy, and saves its form.
import { assert, facts, open, run, shot } from './lib.mjs';

const { good, bad } = facts.more;
const choose = (page, ...files) => page.locator('input[type=file]').first().setInputFiles(
	files.map(({ name, content }) => ({ name, mimeType: 'image/jpeg', buffer: Buffer.from(content, 'base64') })));
const waiting = (page, n) => page.waitForFunction((n) => document.querySelectorAll('[name="held[]"]').length === n, n);

await run(async () => {
	const abandoned = await visit();
	await choose(abandoned, { ...good, name: 'abandoned.jpg' });
	await waiting(abandoned, 1);
	await abandoned.reload();

	const page = await visit();
	await choose(page, { ...good, name: 'removed.jpg' });
	await waiting(page, 1);
	const removed = page.waitForResponse((response) => response.request().method() === 'DELETE');
	await page.getByRole('button', { name: /^Remove/ }).click();
	assert.equal((await removed).status(), 204);
	await waiting(page, 0);
	// More than a ticket is for, if nobody asks for more.
	await choose(page, ...Array.from({ length: 12 }, (_, n) => ({ ...good, name: `photo-${n}.jpg` })));
	await waiting(page, 12);
	await shot(page, 'uploaded');
	await page.getByLabel('Title').fill('A post');
	await page.getByRole('button', { name: 'Save' }).click();
	await page.getByText('It is saved.').waitFor();
	const [, ...addresses] = (await page.locator('body').innerText()).split('\n');
	assert.equal(addresses.length, 12, addresses.join());
	for (const address of addresses) {
		assert.match(address, /\/static\/img\/content\/\d\d-\d\d\/\d\d\/photo-\d+\.jpg$/);
		const answer = await page.request.get(address);
		assert.equal((await answer.body()).toString('base64'), good.content);
	}

	const other = await visit();
	await choose(other, bad);
	await other.getByText(`Failed to upload ${bad.name} ${bad.message}`).first().waitFor();
	await shot(other, 'refused');

	await page.request.post(facts.more.lockOut);
	const stranger = await visit();
	await choose(stranger, good);
	await stranger.getByText('You may not upload.').first().waitFor();
	await waiting(stranger, 0);
});

// Uppy logs its messages to the user to the console as well.
async function visit() {
	const page = await open();
	await page.evaluate(() => { console.error = () => {}; });
	return page;
}
