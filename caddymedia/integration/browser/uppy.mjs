// Uploads images on the documented page with Uppy.
import { assert, facts, open, run, shot } from './lib.mjs';

const { good, bad } = facts.more;
const choose = (page, ...files) => page.locator('input[type=file]').first().setInputFiles(
	files.map(({ name, content }) => ({ name, mimeType: 'image/jpeg', buffer: Buffer.from(content, 'base64') })));
const upload = (page) => page.getByRole('button', { name: /^Upload \d+ files?$/ }).click();

await run(async () => {
	const page = await visit();
	// More than a ticket is for, if nobody asks for more.
	await choose(page, ...Array.from({ length: 12 }, (_, n) => ({ ...good, name: `photo-${n}.jpg` })));
	await upload(page);
	await page.locator('#results li').nth(11).waitFor();
	assert.equal(await page.locator('#results li').count(), 12);
	for (const line of await page.locator('#results li').allInnerTexts()) {
		const [address, filename] = line.split(' ');
		assert.ok(address.endsWith(`/static/img/content/${filename}`) && /^\d\d-\d\d\/\d\d\//.test(filename), line);
		const answer = await page.request.get(address);
		assert.equal((await answer.body()).toString('base64'), good.content);
	}
	await shot(page, 'stored');

	await page.getByRole('button', { name: 'Done' }).click();
	await choose(page, bad);
	await upload(page);
	await page.getByText(`Failed to upload ${bad.name} ${bad.message}`).waitFor();
	await shot(page, 'refused');

	await page.request.post(facts.more.lockOut);
	const stranger = await visit();
	await choose(stranger, good);
	await upload(stranger);
	await stranger.getByText('You may not upload.').waitFor();
	assert.equal(await stranger.getByText('/static/').count(), 0);
});

// Uppy logs its messages to the user to the console as well.
async function visit() {
	const page = await open();
	await page.evaluate(() => { console.error = () => {}; });
	return page;
}
