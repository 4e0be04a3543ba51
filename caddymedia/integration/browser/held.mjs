// Uploads photos on a documented page, and saves its form. A photo is removed, and a page is left.
import { assert, facts, open, run, shot } from './lib.mjs';

const { page: name, photos, bad } = facts.more;
const filePond = name === 'filepond.html';
const choose = (page, ...files) => page.locator('input[type=file]').first().setInputFiles(
	files.map(({ name, content }) => ({ name, mimeType: 'image/jpeg', buffer: Buffer.from(content, 'base64') })));
const photo = (name) => ({ name, content: photos[name] });
const ids = (page) => page.locator('input[type=hidden][name="held[]"]').evaluateAll((inputs) => inputs.map((input) => input.value).filter(Boolean));

/** Waits until so many photos are uploaded, and returns their ids. */
async function waiting(page, n) {
	for (const end = Date.now() + 30_000; (await ids(page)).length !== n;) {
		assert.ok(Date.now() < end, `the form has the ids ${await ids(page)}, not ${n}`);
		await page.waitForTimeout(20);
	}
	return ids(page);
}

await run(async () => {
	const page = await open();
	await choose(page, bad);
	await page.getByText('You may not upload.').first().waitFor();
	await page.request.get(`${facts.panel}log-in`);
	await page.reload();

	const abandoned = await page.context().newPage();
	await abandoned.goto(facts.panel);
	await choose(abandoned, photo('abandoned.jpg'));
	await waiting(abandoned, 1);
	await abandoned.close();

	await choose(page, photo('a.jpg'), photo('b.jpg'), photo('c.jpg'));
	const uploaded = await waiting(page, 3);
	if (filePond) {
		const removed = page.waitForResponse((response) => response.request().method() === 'DELETE');
		await page.locator('.filepond--item', { hasText: 'b.jpg' }).locator('.filepond--action-revert-item-processing').click();
		assert.equal((await removed).status(), 204);
		const left = await waiting(page, 2);
		await page.reload();
		assert.deepEqual((await waiting(page, 2)).toSorted(), left.toSorted());
		await page.locator('.filepond--image-preview canvas').nth(1).waitFor();
		await page.getByText('a.jpg').first().waitFor();
		await shot(page, 'reloaded');
	}
	await choose(page, bad);
	await page.getByText(bad.message).first().waitFor();
	await shot(page, `${name}-refused`);
	const sent = await ids(page);
	assert.equal(sent.length, filePond ? 2 : 3);
	assert.ok(sent.every((id) => uploaded.includes(id)), `${sent} of ${uploaded}`);

	await page.getByLabel('Title').fill('A post');
	await page.getByRole('button', { name: 'Save' }).click();
	await page.getByText('It is saved.').waitFor();
	const [, ...addresses] = (await page.locator('body').innerText()).split('\n');
	assert.equal(addresses.length, sent.length, addresses.join());
	for (const address of addresses) {
		const answer = await page.request.get(address);
		assert.equal((await answer.body()).toString('base64'), photos[address.split('/').at(-1)]);
	}
	await page.goto(facts.panel); // what is saved waits no more
	await page.locator('.filepond--drop-label, input[type=file]').first().waitFor();
	assert.deepEqual(await ids(page), []);
});
